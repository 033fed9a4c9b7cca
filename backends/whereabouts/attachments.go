package whereabouts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

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
	if ipam.IsUnread(err) {
		return nil, &ipam.UnreadError{List: "network attachments"}
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
	if err := kube.Read(ctx, client, &served, "/apis"); err != nil {
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

// readAttachment decodes a network attachment. One that cannot be decoded may be about any of the ranges it
// names, but no other.
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
		a.closed, a.unsure = withoutRange(o.Spec.Config)
	}
	for i := range a.ranges {
		if r := &a.ranges[i]; r.broken != nil {
			r.broken = fmt.Errorf("%s%w; correct it, or delete the attachment", where, r.broken)
		}
	}
	return a
}

// Tenants write attachments, and each may have a configuration of a MiB.
const (
	// maxConfigurations is how many bytes of configurations are kept in decoded form, in which
	// they take up to 20 times as much memory. A range counts as rangeSize bytes more. Most
	// configurations have less than 1 KiB.
	maxConfigurations = 8 << 20
	rangeSize         = 256

	// maxUnread is how many ranges are kept of all other configurations together.
	maxUnread = 10_000
)

// errUnread is why nothing but its ranges is known of a configuration.
var errUnread = errors.New("spec.config: the configurations of all network attachments together have too much text, " +
	"or too many ranges, and this is one of the longest; shorten it, or delete the attachment")

// A configuration is that of one network attachment, as far as it is kept.
type configuration struct {
	name   string // of the attachment: namespace/name
	ranges []attachedRange
	size   int    // with that of its ranges; 0 if it is not for the plugin
	unread bool   // nothing of it is kept but its ranges
	closed string // why pods get no address through it, if it has no range
	unsure bool   // they may get one all the same
}

// configurations limits what is kept of the configurations of attachments, as they arrive. If
// there are too many, it gives up the longest ones, so that one tenant's do not stand for those
// of others. The zero value has none.
type configurations struct {
	known  map[string]*configuration // by name
	size   int                       // of those that are kept
	unread int                       // how many ranges the others have
	limit  int                       // a configuration of this size is not kept; 0: none was given up
}

// take decodes an attachment. It may give up its configuration later, while it takes others. An
// attachment that is taken again, because its list is read again, counts once.
func (c *configurations) take(item json.RawMessage) *configuration {
	a := readAttachment(item)
	if c.known == nil {
		c.known = make(map[string]*configuration)
	}
	if before := c.known[a.name]; before != nil && before.unread {
		c.unread -= len(before.ranges)
	} else if before != nil {
		c.size -= before.size
	}
	c.known[a.name] = a
	c.size += a.size
	if c.limit > 0 && a.size >= c.limit {
		c.giveUp(a)
	}
	if c.size > maxConfigurations {
		longest := slices.SortedFunc(maps.Values(c.known), func(a, b *configuration) int {
			return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name))
		})
		for _, a := range longest {
			if c.size > maxConfigurations && !a.unread {
				c.limit = a.size
				c.giveUp(a)
			}
		}
	}
	return a
}

// giveUp forgets a configuration but for its ranges. Each may be of any network. If even the ranges are too
// many, it may be about any address.
func (c *configurations) giveUp(a *configuration) {
	c.size -= a.size
	type part struct {
		from   netip.Prefix
		sliced bool
	}
	known := make(map[part]bool)
	var ranges []attachedRange
	for _, r := range a.ranges {
		if of := (part{r.from, r.sliced}); !known[of] {
			known[of] = true
			ranges = append(ranges, attachedRange{from: r.from, anyNetwork: true, sliced: r.sliced, broken: errUnread})
		}
	}
	if c.unread+len(ranges) > maxUnread {
		ranges = nil
		for _, all := range []string{"0.0.0.0/0", "::/0"} {
			ranges = append(ranges, attachedRange{from: netip.MustParsePrefix(all), anyNetwork: true, anywhere: true, broken: errUnread})
		}
	}
	a.ranges, a.unread = ranges, true
	c.unread += len(ranges)
}
