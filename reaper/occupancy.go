package reaper

import (
	"fmt"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/policy"
)

// An occupancy is who has which address now: by what the stores say, and by what
// pods show.
type occupancy struct {
	census   Census
	listings map[string]Listing
	claims   map[string]map[netip.Addr][]claim // by backend
	pools    map[[2]string]*Pool               // by backend and name
	taken    map[netip.Addr][]Orphan           // every entry, in its pool
}

func newOccupancy(inv Inventory, census Census) occupancy {
	o := occupancy{
		census: census, listings: make(map[string]Listing), claims: make(map[string]map[netip.Addr][]claim),
		pools: make(map[[2]string]*Pool), taken: make(map[netip.Addr][]Orphan),
	}
	for _, l := range inv.Listings {
		o.listings[l.Backend], o.claims[l.Backend] = l, l.claims()
		for i := range l.Pools {
			u := &l.Pools[i]
			o.pools[[2]string{l.Backend, u.Name}] = u
			for _, r := range u.Allocations {
				if r.holdsAddress() {
					o.taken[r.IP] = append(o.taken[r.IP], Orphan{pool: u, allocation: r})
				}
			}
		}
	}
	return o
}

// sort settles what cannot be put back, and returns the other records, by index.
func (r *restoration) partition(o occupancy) []int {
	var free []int
	for i, rec := range r.report.records {
		switch l, ok := o.listings[rec.Backend]; {
		case !ok:
			r.settle(i, NotRestored, fmt.Errorf("there is no backend %q here", rec.Backend))
			continue
		case l.Status == StatusFailed || l.Status == StatusSkipped:
			r.settle(i, NotRestored, fmt.Errorf("%s: %s", rec.Backend, l.Message))
			continue
		}
		if err := o.conflict(rec); err != nil {
			r.settle(i, Taken, err)
			continue
		}
		free = append(free, i)
	}
	return free
}

// conflict returns an error that wraps ErrTaken where somebody else has the
// address of a record, whatever became of its place.
func (o occupancy) conflict(rec Record) error {
	ip, err := netip.ParseAddr(rec.IP)
	if err != nil {
		return nil // it has none
	}
	pod := PodRef{rec.Owner.Namespace, rec.Owner.Pod}
	pool := o.pools[[2]string{rec.Backend, rec.Pool}]
	if pool == nil {
		pool = &Pool{Name: rec.Pool}
	}
	entry := Orphan{
		pool: pool, claims: o.claims[rec.Backend],
		allocation: Allocation{Backend: rec.Backend, Pool: rec.Pool, Key: rec.Key, IP: ip, Owner: Owner{Pod: pod}},
	}
	if by, ok := shownBy(policy.Default(), o.census, entry); ok && by != pod {
		return fmt.Errorf("%w: pod %s shows the address", ErrTaken, by)
	}
	for _, other := range o.taken[ip] {
		if r := other.allocation; entry.competes(other) && !rec.sharesOwner(r) {
			return fmt.Errorf("%w: %s %s has the address for %s", ErrTaken, r.Backend, r.Pool, r.Owner.whom())
		}
	}
	return nil
}

// competes reports whether two entries of one address, of which neither is the
// other, are of the same network, or may be.
func (o Orphan) competes(other Orphan) bool {
	a, b := o.allocation, other.allocation
	if a.Backend == b.Backend && a.Pool == b.Pool && a.Key == b.Key {
		return false
	}
	here, there := o.pool.Network, other.pool.Network
	return here != "" && here == there || a.Backend == b.Backend && (here == "" || there == "")
}

// sharesOwner reports whether another entry is surely for the same pod, or for the
// same sandbox where the record names none.
func (r Record) sharesOwner(other Allocation) bool {
	switch pod := (PodRef{r.Owner.Namespace, r.Owner.Pod}); {
	case other.Unreadable != "" || other.Foreign != "":
		return false
	case pod != PodRef{}:
		return other.Owner.Pod == pod
	default:
		return other.Owner.Pod == PodRef{} && r.Owner.Sandbox != "" && other.Owner.Sandbox == r.Owner.Sandbox
	}
}
