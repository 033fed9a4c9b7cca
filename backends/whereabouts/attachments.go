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

// The network attachments of Multus, in which the configurations of networks
// are.
const (
	attachmentGroup    = "k8s.cni.cncf.io"
	attachmentVersion  = "v1"
	attachmentResource = "network-attachment-definitions"
	attachmentKind     = "NetworkAttachmentDefinition"
)

// listExclusions reads what the network attachments of all namespaces exclude;
// nothing where the API server does not serve any. The client may be of another
// API group.
func listExclusions(ctx context.Context, client rest.Interface) (exclusions, error) {
	items, err := kube.ListRaw(ctx, func() *rest.Request {
		return client.Get().AbsPath("/apis", attachmentGroup, attachmentVersion, attachmentResource)
	})
	if apierrors.IsNotFound(err) {
		err = notServed(ctx, client)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s.%s: %w", attachmentResource, attachmentGroup, err)
	}
	return readExclusions(items)
}

// notServed returns nil if the API server says that it has no such version of
// the group of the attachments. That the list was not found does not prove it: a
// proxy on the way may have said so. Nor does an answer that leaves out the
// group of the store that was just read.
func notServed(ctx context.Context, client rest.Interface) error {
	var served metav1.APIGroupList
	err := kube.Patiently(ctx, func(ctx context.Context) error {
		data, err := kube.Send(ctx, client.Get().AbsPath("/apis"))
		if err != nil {
			return err
		}
		return kube.Decode(data, &served)
	})
	if err != nil {
		return fmt.Errorf("not found, and cannot tell why: list the API groups: %w", err)
	}
	if !serves(served, v1alpha1.SchemeGroupVersion.String()) {
		return fmt.Errorf("not found, and cannot tell why: the list of API groups is without %s", v1alpha1.SchemeGroupVersion)
	}
	if version := attachmentGroup + "/" + attachmentVersion; serves(served, version) {
		return fmt.Errorf("not found, although the API server serves %s", version)
	}
	return nil
}

// serves reports whether the list has the version, which is as group/version.
func serves(groups metav1.APIGroupList, version string) bool {
	return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return slices.ContainsFunc(g.Versions, func(v metav1.GroupVersionForDiscovery) bool {
			return v.GroupVersion == version
		})
	})
}

// readExclusions understands network attachments. One that may exclude
// addresses, and cannot be understood, is an error: nobody knows then which.
func readExclusions(items []json.RawMessage) (exclusions, error) {
	var all exclusions
	for _, item := range items {
		var o object
		if err := kube.Decode(item, &o); err != nil {
			return nil, fmt.Errorf("network attachment %s: %w", o.pool(), err)
		}
		var spec struct {
			Config string `json:"config"` // empty where a file on the nodes has it
		}
		if len(o.Spec) > 0 {
			if err := kube.Decode(o.Spec, &spec); err != nil {
				return nil, fmt.Errorf("network attachment %s: spec: %w", o.pool(), err)
			}
		}
		found, err := readConfig(spec.Config)
		if err != nil {
			return nil, fmt.Errorf("network attachment %s: spec.config: %w; correct it, or delete the attachment", o.pool(), err)
		}
		for _, e := range found {
			e.attachment = o.pool()
			all = append(all, e)
		}
	}
	return all, nil
}
