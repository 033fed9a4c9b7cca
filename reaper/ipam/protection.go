package ipam

import (
	"net/netip"
	"time"
)

// A Protection says which addresses an allocation protects: its IPs, and all addresses
// of the pod that the allocation names. It ends when the pod has been gone for longer
// than the TTL. If the TTL is nil, it never ends.
type Protection struct {
	IPs     []netip.Addr
	TTL     *time.Duration
	Deleted time.Time // when the pod was deleted; zero if the object does not say

	// Deletable is set if the policy lets the allocation be released, after the
	// allocations that it protects.
	Deletable bool

	// An object that cannot be decoded protects everything that it may name. Namespaces
	// are those of the pods that it may name; if All is set, everything is protected.
	// An allocation that names no pod may be of any namespace.
	Namespaces []string
	All        bool
}

// Until returns when the protection ends, if a run first saw the pod gone at the given
// time. It reports false if the protection never ends.
func (p Protection) Until(firstSeen time.Time) (time.Time, bool) {
	if p.TTL == nil {
		return time.Time{}, false
	}
	from := firstSeen
	if !p.Deleted.IsZero() {
		from = p.Deleted
	}
	return from.Add(*p.TTL), true
}
