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
	units    map[[2]string]*Unit               // by backend and name
	taken    map[netip.Addr][]Orphan           // every entry, in its unit
}

func newOccupancy(inv Inventory, census Census) occupancy {
	o := occupancy{
		census: census, listings: make(map[string]Listing), claims: make(map[string]map[netip.Addr][]claim),
		units: make(map[[2]string]*Unit), taken: make(map[netip.Addr][]Orphan),
	}
	for _, l := range inv.Listings {
		o.listings[l.Backend], o.claims[l.Backend] = l, l.claims()
		for i := range l.Units {
			u := &l.Units[i]
			o.units[[2]string{l.Backend, u.Name}] = u
			for _, r := range u.Reservations {
				if r.holdsAddress() {
					o.taken[r.IP] = append(o.taken[r.IP], Orphan{unit: u, reservation: r})
				}
			}
		}
	}
	return o
}

// sort settles what cannot be put back, and returns the other records, by index.
func (r *restoring) sort(o occupancy) []int {
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
	unit := o.units[[2]string{rec.Backend, rec.Unit}]
	if unit == nil {
		unit = &Unit{Name: rec.Unit}
	}
	entry := Orphan{
		unit: unit, claims: o.claims[rec.Backend],
		reservation: Reservation{Backend: rec.Backend, Unit: rec.Unit, Key: rec.Key, IP: ip, Owner: Owner{Pod: pod}},
	}
	if by, ok := shownBy(policy.Default(), o.census, entry); ok && by != pod {
		return fmt.Errorf("%w: pod %s shows the address", ErrTaken, by)
	}
	for _, other := range o.taken[ip] {
		if r := other.reservation; entry.competes(other) && !rec.sharesOwner(r) {
			return fmt.Errorf("%w: %s %s has the address for %s", ErrTaken, r.Backend, r.Unit, r.Owner.whom())
		}
	}
	return nil
}

// competes reports whether two entries of one address, of which neither is the
// other, are of the same network, or may be.
func (o Orphan) competes(other Orphan) bool {
	a, b := o.reservation, other.reservation
	if a.Backend == b.Backend && a.Unit == b.Unit && a.Key == b.Key {
		return false
	}
	here, there := o.unit.Domain, other.unit.Domain
	return here != "" && here == there || a.Backend == b.Backend && (here == "" || there == "")
}

// sharesOwner reports whether another entry is surely for the same pod, or for the
// same sandbox where the record names none.
func (r Record) sharesOwner(other Reservation) bool {
	switch pod := (PodRef{r.Owner.Namespace, r.Owner.Pod}); {
	case other.Unreadable != "" || other.Foreign != "":
		return false
	case pod != PodRef{}:
		return other.Owner.Pod == pod
	default:
		return other.Owner.Pod == PodRef{} && r.Owner.Sandbox != "" && other.Owner.Sandbox == r.Owner.Sandbox
	}
}
