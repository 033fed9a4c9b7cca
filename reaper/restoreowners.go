package reaper

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
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
	listings []ipam.Listing
	taken    map[netip.Addr][]*ipam.Allocation
	reserved map[netip.Addr][]ipam.Protection // of a pod
	adoptive map[podInPool][]*ipam.Allocation // those that a later sandbox of the pod adopts
}

// A podInPool is a pod that has addresses in a pool.
type podInPool struct {
	pool ipam.PoolRef
	pod  ipam.PodRef
}

// newOccupancy indexes an inventory and the census after it.
func newOccupancy(now time.Time, inv ipam.Inventory, census census.Census) occupancy {
	o := occupancy{
		census:   census,
		listings: inv.Listings,
		facts:    judge.NewFacts(now, policy.Default(), inv, census, ledger.Ledger{}),
		taken:    make(map[netip.Addr][]*ipam.Allocation),
		reserved: make(map[netip.Addr][]ipam.Protection), adoptive: make(map[podInPool][]*ipam.Allocation),
	}
	for _, l := range inv.Listings {
		for _, p := range l.Protections {
			for _, ip := range p.IPs {
				if p.Pod != (ipam.PodRef{}) {
					o.reserved[ip] = append(o.reserved[ip], p)
				}
			}
		}
	}
	for a := range inv.Allocations() {
		if a.HoldsAddress() {
			o.taken[a.IP] = append(o.taken[a.IP], a)
		}
		if a.ProvesOwner() && a.NamesPod() && !a.NeverAdopted() {
			of := podInPool{ipam.PoolRef{Backend: a.Backend, Name: a.Pool}, a.Owner.Pod}
			o.adoptive[of] = append(o.adoptive[of], a)
		}
	}
	return o
}

// refuse decides the records that cannot be put back.
func (r *restoreCall) refuse(o occupancy, records []*restoration) {
	for _, back := range records {
		n := slices.IndexFunc(o.listings, func(l ipam.Listing) bool { return l.Backend == back.Backend })
		if n < 0 {
			r.settle(back, report.NotRestored, fmt.Errorf("the program has no backend %q", back.Backend))
			continue
		}
		if l := o.listings[n]; l.Status == ipam.StatusFailed || l.Status == ipam.StatusSkipped {
			r.settle(back, report.NotRestored, fmt.Errorf("%s: %s", back.Backend, l.Message))
			continue
		}
		if err := o.conflict(back.allocation()); err != nil {
			r.settle(back, report.Taken, err)
			continue
		}
		back.InUse, back.note = o.inUse(back.allocation()), ""
		r.refuseUnread(o, back)
		if back.outcome == report.Unknown {
			r.refuseSecond(o, back)
		}
	}
}

// refuseUnread decides a record whose address another pod may have, as far as can be read. If the status of
// its own pod has the address, no other pod has it.
func (r *restoreCall) refuseUnread(o occupancy, back *restoration) {
	if back.InUse {
		return
	}
	unread := o.unread(back.allocation(), r.Shares)
	switch {
	case unread == nil:
	case r.AcceptSecondAddress:
		back.note = fmt.Sprintf("another pod may have it: %v", unread)
	case r.Node != "":
		r.settle(back, report.NotRestored, fmt.Errorf("another pod may have it: %w: correct that, and restore again", unread))
	default:
		r.settle(back, report.NotRestored, fmt.Errorf("another pod may have it: %w: %s", unread, forced))
	}
}

// forced says what puts back a record that a restore refuses in doubt.
const forced = "--accept-second-address puts it back all the same"

// unread returns what could not be read and may have the address of a record, or keep it for another pod; nil
// if all that may was read. shares is RestoreOptions.Shares.
func (o occupancy) unread(a *ipam.Allocation, shares func(store, other string) bool) error {
	if !a.IP.IsValid() {
		return nil
	}
	own := o.facts.PoolOf(a)
	for _, l := range o.listings {
		mine := l.Backend == a.Backend
		beside := l.Protects || shares != nil && shares(l.Backend, a.Backend)
		switch {
		case l.Status == ipam.StatusSkipped, !mine && !beside:
			continue
		case l.Status == ipam.StatusFailed:
			return fmt.Errorf("%s: %s", l.Backend, l.Message)
		case mine && own.Exclusive:
			continue
		}
		for _, p := range l.Protections {
			if p.Unreadable != "" {
				return fmt.Errorf("%s: %s", p.Name, p.Unreadable)
			}
		}
		for _, err := range l.Errors {
			if mayHave(err, own.Network, a.IP) {
				return fmt.Errorf("%s: %w", l.Backend, err)
			}
		}
		if n := slices.IndexFunc(l.Unlisted, func(large netip.Prefix) bool { return large.Contains(a.IP) }); n >= 0 {
			return fmt.Errorf("%s: %s is too large to be listed", l.Backend, l.Unlisted[n])
		}
	}
	return nil
}

// mayHave reports whether a pool that could not be read may have an address of a network. An empty network
// may be any.
func mayHave(unread error, network string, ip netip.Addr) bool {
	var pool *ipam.PoolError
	if !errors.As(unread, &pool) {
		return true
	}
	elsewhere := pool.Network != "" && network != "" && pool.Network != network
	return !elsewhere && (!pool.Range.IsValid() || pool.Range.Contains(ip))
}

// refuseSecond decides a record whose pod has got another address of the same pool since: no sandbox of
// the pod would ever take the second one. It goes back all the same if an earlier sandbox may still run,
// which is what an undo is for.
func (r *restoreCall) refuseSecond(o occupancy, back *restoration) {
	other := o.another(back, r.Journal.Records)
	if other == nil {
		return
	}
	has := fmt.Sprintf("%s has %s by now", other.Owner, other.IP)
	why := o.facts.MayStillRun(back.Owner.Node, ledger.Place{Node: back.Node, Boot: back.Boot, Mirror: back.Mirror})
	switch {
	case why != "":
		back.add(has + ", and this address, too, because an earlier sandbox may still run: " + why)
	case r.AcceptSecondAddress:
		back.add(has + ", and this address, too")
	default:
		r.settle(back, report.NotRestored, fmt.Errorf("%s, and no sandbox of it would take a second address: %s", has, forced))
	}
}

// add adds a sentence to the note.
func (back *restoration) add(sentence string) {
	if back.note != "" {
		back.note += "; "
	}
	back.note += sentence
}

// another returns an allocation with another address that the pod of a record has got on the same
// interface, if a later sandbox would adopt either; nil if there is none, or if the pod shows the address.
// An interface without a name may be any. What the journal has was there before the run that wrote it.
func (o occupancy) another(back *restoration, journal []ipam.Record) *ipam.Allocation {
	a := back.allocation()
	if pod, _ := o.census.Pod(a.Owner.Pod); pod.Shows(a.IP) {
		return nil
	}
	for _, other := range o.adoptive[podInPool{ipam.PoolRef{Backend: a.Backend, Name: a.Pool}, a.Owner.Pod}] {
		one, two := back.Owner.Interface, other.Owner.Interface
		if other.IP == a.IP || one != two && one != "" && two != "" {
			continue
		}
		if !slices.ContainsFunc(journal, func(rec ipam.Record) bool {
			return rec.Backend == other.Backend && rec.Pool == other.Pool && rec.Key == other.Key && rec.Owner.Sandbox == other.Owner.Sandbox
		}) {
			return other
		}
	}
	return nil
}

// inUse reports whether the pod of the record still has its address, as its status says. A tenant
// may write anything into annotations, and a forged journal anything into a record.
func (o occupancy) inUse(a *ipam.Allocation) bool {
	pod, _ := o.census.Pod(a.Owner.Pod)
	return a.IP.IsValid() && !pod.Finished && pod.Proves(a.IP)
}

// conflict returns an error that wraps ErrTaken if the address of the record has another
// owner, whether or not the place of the record is free.
func (o occupancy) conflict(a *ipam.Allocation) error {
	if !a.IP.IsValid() {
		return nil
	}
	pod := a.Owner.Pod
	for claim := range o.facts.Case(a).ClaimsOfOthers {
		if !claim.By.MayBe(pod) { // a guest may have the address from this pod
			return fmt.Errorf("%w: %s", ipam.ErrTaken, claim)
		}
	}
	for _, by := range o.reserved[a.IP] {
		if pod != (ipam.PodRef{}) && pod != by.Pod {
			return fmt.Errorf("%w: %s keeps the address for pod %s", ipam.ErrTaken, by.Name, by.Pod)
		}
	}
	for _, other := range o.taken[a.IP] {
		if o.compete(a, other) && !sharesOwner(a, other) {
			return fmt.Errorf("%w: the address is allocated to %s", ipam.ErrTaken, other.Owner)
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
func sharesOwner(a, other *ipam.Allocation) bool {
	switch {
	case other.Unreadable != "" || other.Foreign != "", a.Owner.Pod != other.Owner.Pod:
		return false
	case a.Owner.Pod != ipam.PodRef{}:
		return true
	default:
		return a.Owner.Sandbox != "" && a.Owner.Sandbox == other.Owner.Sandbox
	}
}
