package whereabouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The resource of IPAMClaims, through which the address of a virtual machine outlives its pods.
// They share the group of network attachments.
const (
	claimVersion  = "v1alpha1"
	claimResource = "ipamclaims"
	claimKind     = "IPAMClaim"
)

// claims says which IPAMClaims exist. It lists them when protect first meets an allocation that
// belongs to one, so that the right to list them is needed only then. And they are listed after
// the allocations: a claim that existed when its allocation was listed is missing only if it is
// gone.
type claims func() (names map[string]bool, err error) // namespace/name

// listClaims returns the IPAMClaims of all namespaces, listed on first use.
func listClaims(ctx context.Context, client rest.Interface) claims {
	return sync.OnceValues(func() (map[string]bool, error) {
		items, err := kube.ListRaw(ctx, client, func(get *rest.Request) *rest.Request {
			return get.AbsPath("/apis", attachmentGroup, claimVersion, claimResource)
		})
		switch {
		case ipam.IsUnread(err):
			return nil, errors.New("the files have no IPAMClaim, or only a part of a list: add the output of kubectl get " + claimResource + " -A -o yaml")
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("the API server does not serve %s.%s/%s: install their definition",
				claimResource, attachmentGroup, claimVersion)
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("%w; grant list on %s.%s", err, claimResource, attachmentGroup)
		case err != nil:
			return nil, err
		}
		return readClaims(items)
	})
}

// readClaims returns the names of IPAMClaims. Nothing else about them matters.
func readClaims(items []json.RawMessage) (map[string]bool, error) {
	names := make(map[string]bool, len(items))
	for _, item := range items {
		var o object
		if err := kube.Decode(item, &o); err != nil {
			return nil, fmt.Errorf("decode IPAMClaim %s: %w", o.pool(), err)
		}
		names[o.pool()] = true
	}
	return names, nil
}

// protection says what protects the addresses of a claim; empty if it is gone.
func (c claims) protection(claim string) string {
	if readOwner(claim).Namespace == "" {
		return fmt.Sprintf("it belongs to the IPAMClaim %q, which is not namespace/name: correct %s, or remove it", claim, claimField)
	}
	existing, err := c()
	switch {
	case err != nil:
		return fmt.Sprintf("it belongs to the IPAMClaim %s, and IPAMClaims could not be listed: %v", claim, err)
	case existing[claim]:
		return "IPAMClaim " + claim + " exists"
	}
	return ""
}

// protections are what keeps an allocation without an owner.
type protections struct {
	claims   claims
	settings Settings
	unread   *ipam.UnreadError // a list that may keep any of them; nil if there is none
}

// protect sets what keeps the allocations of a pool. One that belongs to an IPAMClaim is kept, unless the
// claim is certainly gone. stored returns an allocation as stored: an entry, or the spec of an overlapping
// reservation.
func (p protections) protect(u *ipam.Pool, stored func(ipam.Allocation) string) {
	for i := range u.Allocations {
		a := &u.Allocations[i]
		if claim := claimOf(stored(*a)); claim != "" {
			a.Protected = p.claims.protection(claim)
		}
		if a.Protected == "" && p.unread != nil {
			a.Protected = p.unread.Protects()
		}
		if p.settings.UnknownFields == IgnoreUnknownFields {
			a.UnknownField = ""
		}
	}
}

// claimField is the field that names the IPAMClaim to which an address belongs
// (Whereabouts pull request 742).
const claimField = "ipamclaimref"

// claimOf returns the IPAMClaim that a stored object names; empty if it names none, or if the
// field is not a string, which makes the allocation unreadable.
func claimOf(stored string) string {
	// Few objects have the field, so most are not decoded. A backslash could hide its name.
	if !strings.Contains(stored, claimField) && !strings.Contains(stored, `\`) {
		return ""
	}
	var e entry
	_ = kube.Decode([]byte(stored), &e)
	return e.Claim
}
