package whereabouts

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The resource of Multus's network attachments, which contain network configurations.
const (
	attachmentGroup    = "k8s.cni.cncf.io"
	attachmentVersion  = "v1"
	attachmentResource = "network-attachment-definitions"
	attachmentKind     = "NetworkAttachmentDefinition"
)

// allAttachments returns the network attachments of all namespaces, none if the API server does not
// serve them.
func allAttachments(ctx context.Context, client rest.Interface) ([]*configuration, error) {
	var c configurations
	all, err := kube.ListReduced(ctx, client, func(get *rest.Request) *rest.Request {
		return get.AbsPath("/apis", attachmentGroup, attachmentVersion, attachmentResource)
	}, c.take)
	if apierrors.IsNotFound(err) {
		err = notServed(ctx, client)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s.%s: %w", attachmentResource, attachmentGroup, err)
	}
	return all, nil
}

// notServed returns nil if the API server says that it does not serve this version of network
// attachments. A 404 for the list does not prove that: a proxy may have answered. Nor does a
// list of API groups that lacks the group of the store that was just read.
func notServed(ctx context.Context, client rest.Interface) error {
	var served metav1.APIGroupList
	if err := kube.Discover(ctx, client, &served, "/apis"); err != nil {
		return fmt.Errorf("not found, reason unknown: list the API groups: %w", err)
	}
	versions := make(map[string]bool)
	for _, group := range served.Groups {
		for _, v := range group.Versions {
			versions[v.GroupVersion] = true
		}
	}
	switch ours, theirs := v1alpha1.SchemeGroupVersion.String(), attachmentGroup+"/"+attachmentVersion; {
	case !versions[ours]:
		return fmt.Errorf("not found, reason unknown: the list of API groups lacks %s", ours)
	case versions[theirs]:
		return fmt.Errorf("not found, although the API server serves %s", theirs)
	}
	return nil
}

// readExclusions decodes network attachments.
func readExclusions(items []json.RawMessage) *exclusions {
	var c configurations
	all := make([]*configuration, len(items))
	for i, item := range items {
		all[i] = c.take(item)
	}
	return excludedBy(all)
}

// excludedBy returns what the attachments exclude.
func excludedBy(attachments []*configuration) *exclusions {
	all := new(exclusions)
	for _, a := range attachments {
		all.add(a.name, a.ranges)
		if a.closed != "" {
			all.closed = append(all.closed, ipam.Network{Name: a.name, Closed: a.closed, Attachments: []string{a.name}})
		}
	}
	return all
}

// readAttachment decodes a network attachment. One that cannot be decoded may exclude any
// address of the ranges it names, but no other.
func readAttachment(item json.RawMessage) *configuration {
	var o struct {
		object
		Spec struct {
			Config string `json:"config"` // empty if the configuration is in a file on the nodes
		} `json:"spec"`
	}
	a := new(configuration)
	where, size := "spec.config: ", 0
	if err := kube.Decode(item, &o); err != nil {
		where, size, a.ranges = "", len(item), brokenRanges(string(item), err)
	} else {
		size, a.ranges = len(o.Spec.Config), readConfig(o.Spec.Config)
	}
	a.name = o.pool()
	if len(a.ranges) > 0 {
		a.size = size + rangeSize*len(a.ranges)
	} else {
		a.closed = withoutRange(o.Spec.Config)
	}
	for i := range a.ranges {
		if r := &a.ranges[i]; r.broken != nil {
			r.broken = fmt.Errorf("%s%w; correct it, or delete the attachment", where, r.broken)
		}
	}
	return a
}
