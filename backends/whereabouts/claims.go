package whereabouts

import (
	"cmp"
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
	list func() (existingClaims, error)
}

// existingClaims are the IPAMClaims of a list.
type existingClaims struct {
	names map[string]bool // namespace/name

	// undecoded has why the name of a claim cannot be decoded, by namespace. That
	// claim may be any one of its namespace; the empty namespace is any.
	undecoded map[string]error
}

// listClaims returns the IPAMClaims of all namespaces, to be listed when they are
// asked for. The client may be of another API group.
func listClaims(ctx context.Context, client rest.Interface) claims {
	return claims{sync.OnceValues(func() (existingClaims, error) {
		items, err := kube.ListRaw(ctx, client, func(get *rest.Request) *rest.Request {
			return get.AbsPath("/apis", attachmentGroup, claimVersion, claimResource)
		})
		switch {
		case apierrors.IsNotFound(err):
			return existingClaims{}, fmt.Errorf("the API server does not serve %s.%s/%s: install their definition",
				claimResource, attachmentGroup, claimVersion)
		case apierrors.IsForbidden(err):
			return existingClaims{}, fmt.Errorf("%w; grant list on %s.%s", err, claimResource, attachmentGroup)
		case err != nil:
			return existingClaims{}, err
		}
		return readClaims(items), nil
	})}
}

// readClaims returns the names of IPAMClaims. Nothing else of them matters.
func readClaims(items []json.RawMessage) existingClaims {
	found := existingClaims{names: make(map[string]bool, len(items)), undecoded: make(map[string]error)}
	for _, item := range items {
		var claim struct {
			Metadata struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			} `json:"metadata"`
		}
		err := kube.Decode(item, &claim)
		if err == nil && claim.Metadata.Name == "" {
			err = errors.New("it has no name")
		}
		if err != nil {
			found.undecoded[claim.Metadata.Namespace] = err
			continue
		}
		found.names[claim.Metadata.Namespace+"/"+claim.Metadata.Name] = true
	}
	return found
}

// errNoClaims is why the claims of files without any IPAMClaim are unknown.
var errNoClaims = errors.New("the files have no IPAMClaim: add the output of kubectl get " + claimResource + " -A -o yaml")

// offlineClaims returns the IPAMClaims among documents.
func offlineClaims(items []json.RawMessage) claims {
	return claims{sync.OnceValues(func() (existingClaims, error) {
		if len(items) == 0 {
			return existingClaims{}, errNoClaims
		}
		return readClaims(items), nil
	})}
}

// protect sets the protection of an allocation that belongs to an IPAMClaim, unless
// the claim is surely gone. The stored object is an entry, or the spec of an
// overlapping reservation.
func (c claims) protect(a *ipam.Allocation, stored json.RawMessage) {
	if a.Protected != "" {
		return
	}
	if claim := claimOf(stored); claim != "" {
		a.Protected = c.protection(claim)
	}
}

// protection says what protects the addresses of a claim; nothing if it is gone.
func (c claims) protection(claim string) string {
	namespace := readOwner(claim).Namespace
	if namespace == "" {
		return fmt.Sprintf("it belongs to the IPAMClaim %q, which is not namespace/name: correct %s, or remove it", claim, claimField)
	}
	existing, err := c.list()
	switch {
	case err != nil:
		return fmt.Sprintf("it belongs to the IPAMClaim %s, and IPAMClaims could not be listed: %v", claim, err)
	case existing.names[claim]:
		return "IPAMClaim " + claim + " exists"
	}
	if err := cmp.Or(existing.undecoded[namespace], existing.undecoded[""]); err != nil {
		return fmt.Sprintf("it belongs to the IPAMClaim %s, which may be one that cannot be decoded: %v", claim, err)
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
