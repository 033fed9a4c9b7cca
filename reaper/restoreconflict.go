package reaper

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// An occupancy is an index of the addresses that are in use now: those that the stores
// hold, those that objects protect for a pod, and those that pods and nodes show.
type occupancy struct {
	facts    *judge.Facts
	census   census.Census
	listings map[string]ipam.Listing
	taken    map[netip.Addr][]*ipam.Allocation
	reserved map[netip.Addr][]*ipam.Allocation // by the addresses that an object which names a pod protects
}

// newOccupancy indexes an inventory and the census after it.
func newOccupancy(inv ipam.Inventory, census census.Census) occupancy {
	o := occupancy{
		census:   census,
		facts:    judge.NewFacts(time.Time{}, policy.Default(), inv, census, ledger.Ledger{}),
		listings: make(map[string]ipam.Listing), taken: make(map[netip.Addr][]*ipam.Allocation),
		reserved: make(map[netip.Addr][]*ipam.Allocation),
	}
	for _, l := range inv.Listings {
		o.listings[l.Backend] = l
	}
	for a := range inv.Allocations() {
		if a.HoldsAddress() {
			o.taken[a.IP] = append(o.taken[a.IP], a)
		}
		if a.Protects != nil && a.NamesPod() {
			for _, ip := range a.Protects.IPs {
				o.reserved[ip] = append(o.reserved[ip], a)
			}
		}
	}
	return o
}

// settleTaken decides the records that cannot be put back.
func (r *restoreCall) settleTaken(o occupancy) {
	for _, back := range r.chosen {
		switch l, ok := o.listings[back.Backend]; {
		case !ok:
			r.settle(back, report.NotRestored, fmt.Errorf("the program has no backend %q", back.Backend))
			continue
		case l.Status == ipam.StatusFailed || l.Status == ipam.StatusSkipped:
			r.settle(back, report.NotRestored, fmt.Errorf("%s: %s", back.Backend, l.Message))
			continue
		}
		if err := o.conflict(back.Record); err != nil {
			r.settle(back, report.Taken, err)
			continue
		}
		back.InUse = o.inUse(back.Record)
	}
}

// inUse reports whether the pod of the record still has its address, as its status says. A tenant
// may write anything into annotations, and a forged journal anything into a record.
func (o occupancy) inUse(rec ipam.Record) bool {
	ip, err := netip.ParseAddr(rec.IP)
	if err != nil {
		return false
	}
	for pod := range o.census.Showing(ip) {
		if pod.Ref == rec.Owner.PodRef() && !pod.Finished && pod.Proves(ip) {
			return true
		}
	}
	return false
}

// conflict returns an error that wraps ErrTaken if the address of the record has another
// owner, whether or not the place of the record is free.
func (o occupancy) conflict(rec ipam.Record) error {
	ip, err := netip.ParseAddr(rec.IP)
	if err != nil {
		return nil // the record has no address
	}
	pod := rec.Owner.PodRef()
	a := &ipam.Allocation{Backend: rec.Backend, Pool: rec.Pool, Key: rec.Key, IP: ip, Owner: ipam.Owner{Pod: pod}}
	for by := range o.facts.Case(a).OthersShowing() {
		return fmt.Errorf("%w: pod %s shows the address", ipam.ErrTaken, by.Ref)
	}
	if by, shown := o.facts.Case(a).NodeShowing(); shown {
		return fmt.Errorf("%w: %s shows the address", ipam.ErrTaken, by.Source)
	}
	for _, m := range o.census.Machines(ip) {
		if !m.Launches(pod) { // its guest may have the address from this pod
			return fmt.Errorf("%w: virtual machine %s/%s reports the address", ipam.ErrTaken, m.Namespace, m.Name)
		}
	}
	for _, by := range o.reserved[ip] {
		if pod != (ipam.PodRef{}) && pod != by.Owner.Pod {
			return fmt.Errorf("%w: %s keeps the address for %s", ipam.ErrTaken, by.Name(), by.Owner)
		}
	}
	for _, other := range o.taken[ip] {
		if o.compete(a, other) && !sharesOwner(rec, *other) {
			return fmt.Errorf("%w: %s %s has the address for %s", ipam.ErrTaken, other.Backend, other.Pool, other.Owner)
		}
	}
	return nil
}

// compete reports whether two different allocations of one address are, or may be, of
// the same network.
func (o occupancy) compete(a, b *ipam.Allocation) bool {
	if a.Backend == b.Backend && a.Pool == b.Pool && a.Key == b.Key {
		return false
	}
	here, there := o.facts.PoolOf(a).Network, o.facts.PoolOf(b).Network
	return here != "" && here == there || a.Backend == b.Backend && (here == "" || there == "")
}

// sharesOwner reports whether it is certain that the other allocation is for the same
// pod; or for the same sandbox, if the record names no pod.
func sharesOwner(r ipam.Record, other ipam.Allocation) bool {
	switch pod := r.Owner.PodRef(); {
	case other.Unreadable != "" || other.Foreign != "":
		return false
	case pod != ipam.PodRef{}:
		return other.Owner.Pod == pod
	default:
		return other.Owner.Pod == ipam.PodRef{} && r.Owner.Sandbox != "" && other.Owner.Sandbox == r.Owner.Sandbox
	}
}
