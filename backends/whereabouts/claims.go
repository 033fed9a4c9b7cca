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

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The resource of IPAMClaims, by which the address of a virtual machine outlives its
// pods. The group is that of network attachments.
const (
	claimVersion  = "v1alpha1"
	claimResource = "ipamclaims"
	claimKind     = "IPAMClaim"
)

// claims says which IPAMClaims exist. It lists them when protect first meets an
// allocation that belongs to one. So no right to list them is needed without such an
// allocation. And they are listed after the allocations: a claim that was there when
// its allocation was listed is missing only if it is gone.
type claims struct {
	list func() (map[string]bool, error) // by namespace/name
}

// listClaims returns the IPAMClaims of all namespaces, to be listed when they are
// asked for. The client may be of another API group.
func listClaims(ctx context.Context, client rest.Interface) claims {
	return claims{sync.OnceValues(func() (map[string]bool, error) {
		items, err := kube.ListRaw(ctx, func() *rest.Request {
			return client.Get().AbsPath("/apis", attachmentGroup, claimVersion, claimResource)
		})
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("the API server does not serve %s.%s/%s: install their definition",
				claimResource, attachmentGroup, claimVersion)
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("%w; grant list on %s.%s", err, claimResource, attachmentGroup)
		case err != nil:
			return nil, err
		}
		return readClaims(items)
	})}
}

// readClaims returns the names of IPAMClaims.
func readClaims(items []json.RawMessage) (map[string]bool, error) {
	names := make(map[string]bool, len(items))
	for _, item := range items {
		var o object
		if err := kube.Decode(item, &o); err != nil {
			return nil, fmt.Errorf("decode the IPAMClaim %s: %w", o.pool(), err)
		}
		names[o.pool()] = true
	}
	return names, nil
}

// errNoClaims is why the claims of files without any IPAMClaim are unknown.
var errNoClaims = errors.New("the files have no IPAMClaim: add the output of kubectl get " + claimResource + " -A -o yaml")

// offlineClaims returns the IPAMClaims among documents.
func offlineClaims(items []json.RawMessage) claims {
	return claims{sync.OnceValues(func() (map[string]bool, error) {
		if len(items) == 0 {
			return nil, errNoClaims
		}
		return readClaims(items)
	})}
}

// protect sets the protection of an allocation that belongs to an IPAMClaim, unless
// the claim is surely gone. The stored object is an entry, or the spec of an
// overlapping reservation.
func (c claims) protect(a *reaper.Allocation, stored json.RawMessage) {
	if a.Protected != "" {
		return
	}
	if claim := claimOf(stored); claim != "" {
		a.Protected = c.protection(claim)
	}
}

// protection says what protects the addresses of a claim; nothing if it is gone.
func (c claims) protection(claim string) string {
	if readOwner(claim).Namespace == "" {
		return fmt.Sprintf("it belongs to the IPAMClaim %q, which is not namespace/name: correct %s, or remove it", claim, claimField)
	}
	existing, err := c.list()
	switch {
	case err != nil:
		return fmt.Sprintf("it belongs to the IPAMClaim %s, and IPAMClaims could not be listed: %v", claim, err)
	case existing[claim]:
		return "IPAMClaim " + claim + " exists"
	}
	return ""
}

// claimOf returns the IPAMClaim that a stored object names; empty if it names none.
// A name that is no text is returned as it is stored.
func claimOf(stored json.RawMessage) string {
	// Almost no object has the field, so most are not decoded. A backslash could hide
	// its name.
	if text := string(stored); !strings.Contains(text, claimField) && !strings.Contains(text, `\`) {
		return ""
	}
	var fields struct {
		Claim json.RawMessage `json:"ipamclaimref"`
	}
	if err := kube.Decode(stored, &fields); err != nil {
		return "" // the allocation is unreadable
	}
	if len(fields.Claim) == 0 || string(fields.Claim) == "null" {
		return ""
	}
	var claim string
	if err := kube.Decode(fields.Claim, &claim); err != nil {
		return string(fields.Claim)
	}
	return claim
}
