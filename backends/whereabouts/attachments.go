package whereabouts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The resource of Multus's network attachments, which contain the configurations of
// networks.
const (
	attachmentGroup    = "k8s.cni.cncf.io"
	attachmentVersion  = "v1"
	attachmentResource = "network-attachment-definitions"
	attachmentKind     = "NetworkAttachmentDefinition"
)

// listExclusions returns what the network attachments of all namespaces exclude. It
// returns nothing if the API server does not serve network attachments. The client
// may be of another API group.
func listExclusions(ctx context.Context, client rest.Interface) (*exclusions, error) {
	items, err := kube.ListRaw(ctx, client, func(get *rest.Request) *rest.Request {
		return get.AbsPath("/apis", attachmentGroup, attachmentVersion, attachmentResource)
	})
	if apierrors.IsNotFound(err) {
		err = notServed(ctx, client)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s.%s: %w", attachmentResource, attachmentGroup, err)
	}
	return readExclusions(items), nil
}

// notServed returns nil if the API server says that it does not serve this version
// of network attachments. A list that is not found does not prove that: a proxy may
// have answered. A list of API groups without the group of the store that was just
// read does not prove it either.
func notServed(ctx context.Context, client rest.Interface) error {
	var served metav1.APIGroupList
	if err := kube.Discover(ctx, client, &served, "/apis"); err != nil {
		return fmt.Errorf("not found, and the reason is unknown: list the API groups: %w", err)
	}
	if !serves(served, v1alpha1.SchemeGroupVersion.String()) {
		return fmt.Errorf("not found, and the reason is unknown: the list of API groups lacks %s", v1alpha1.SchemeGroupVersion)
	}
	if version := attachmentGroup + "/" + attachmentVersion; serves(served, version) {
		return fmt.Errorf("not found, although the API server serves %s", version)
	}
	return nil
}

// serves reports whether the list has the version, written as group/version.
func serves(groups metav1.APIGroupList, version string) bool {
	return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return slices.ContainsFunc(g.Versions, func(v metav1.GroupVersionForDiscovery) bool {
			return v.GroupVersion == version
		})
	})
}

// readExclusions decodes network attachments. One that cannot be decoded may exclude
// any address of the ranges that it names, and no other.
func readExclusions(items []json.RawMessage) *exclusions {
	all := new(exclusions)
	for _, item := range items {
		var o object
		if err := kube.Decode(item, &o); err != nil {
			all.add(o.pool(), brokenRanges(string(item), correctable("", err)))
			continue
		}
		var spec struct {
			Config string `json:"config"` // empty if a file on the nodes has the configuration
		}
		if len(o.Spec) > 0 {
			if err := kube.Decode(o.Spec, &spec); err != nil {
				all.add(o.pool(), brokenRanges(string(o.Spec), correctable("spec: ", err)))
				continue
			}
		}
		ranges := readConfig(spec.Config)
		for i := range ranges {
			if ranges[i].broken != nil {
				ranges[i].broken = correctable("spec.config: ", ranges[i].broken)
			}
		}
		all.add(o.pool(), ranges)
	}
	return all
}

// correctable says what to do about an attachment that cannot be decoded.
func correctable(where string, err error) error {
	return fmt.Errorf("%s%w; correct it, or delete the attachment", where, err)
}
