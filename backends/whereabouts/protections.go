package whereabouts

import "github.com/ip-reaper/ip-reaper/reaper/ipam"

// protections are everything that keeps an allocation without an owner.
type protections struct {
	excluded *exclusions
	claims   claims
	settings Settings
}

// protect sets what keeps the allocations of a pool whose addresses are given at the place.
// stored returns an allocation as stored.
func (p protections) protect(u *ipam.Pool, at place, stored func(ipam.Allocation) string) {
	p.excluded.protect(u, at)
	for i := range u.Allocations {
		a := &u.Allocations[i]
		p.claims.protect(a, stored(*a))
		if p.settings.UnknownFields == IgnoreUnknownFields {
			a.UnknownField = ""
		}
	}
}
