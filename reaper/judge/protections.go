package judge

import (
	"net/netip"
	"slices"
	"time"
	"unique"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// protections are the allocations that protect others.
type protections struct {
	unread     string // why a backend that protects others could not be listed; empty if all were listed
	incomplete bool   // some store was not listed: its allocations may be protected
	byIP       map[netip.Addr][]*ipam.Allocation
	byPod      map[ipam.PodRef][]*ipam.Allocation

	// One for each namespace is enough, since it never ends. The empty namespace, of
	// allocations without a pod, has the first one of any namespace.
	byNamespace map[string][]*ipam.Allocation
	all         []*ipam.Allocation
	ranges      []*ipam.Allocation // those with Ranges
}

// protectionsOf indexes the allocations of an inventory that protect others.
func protectionsOf(inv ipam.Inventory) protections {
	p := protections{
		byIP: make(map[netip.Addr][]*ipam.Allocation), byPod: make(map[ipam.PodRef][]*ipam.Allocation),
		byNamespace: make(map[string][]*ipam.Allocation),
		incomplete:  !inv.Complete(),
	}
	for _, l := range inv.Listings {
		if l.Protects && !l.Whole {
			p.unread = l.Backend + " could not be read: " + l.Message
		}
	}
	for a := range inv.Allocations() {
		if a.Protects != nil {
			p.add(a)
		}
	}
	return p
}

// add indexes an allocation that protects others.
func (p *protections) add(a *ipam.Allocation) {
	for _, ip := range a.Protects.IPs {
		p.byIP[ip] = append(p.byIP[ip], a)
	}
	if a.Owner.Pod != (ipam.PodRef{}) {
		p.byPod[a.Owner.Pod] = append(p.byPod[a.Owner.Pod], a)
	}
	for _, namespace := range a.Protects.Namespaces {
		for _, of := range []string{namespace, ""} {
			if len(p.byNamespace[of]) == 0 {
				p.byNamespace[of] = []*ipam.Allocation{a}
			}
		}
	}
	if len(a.Protects.Ranges) > 0 {
		p.ranges = append(p.ranges, a)
	}
	if a.Protects.All && len(p.all) == 0 {
		p.all = []*ipam.Allocation{a}
	}
}

// protects reports whether any allocation protects this one.
func (p *protections) protects(a *ipam.Allocation) bool { return !p.empty() && len(p.over(a)) > 0 }

// empty reports whether no allocation protects others.
func (p *protections) empty() bool {
	return len(p.byIP)+len(p.byPod)+len(p.byNamespace)+len(p.all)+len(p.ranges) == 0
}

// over returns the allocations that protect this one.
func (p *protections) over(a *ipam.Allocation) []*ipam.Allocation {
	found := slices.Concat(p.byIP[a.IP], p.byPod[a.Owner.Pod], p.byNamespace[a.Owner.Pod.Namespace], p.all)
	for _, protector := range p.ranges {
		if protector.Protects.Ranges.Contains(a.IP) {
			found = append(found, protector)
		}
	}
	return found
}

// hold keeps protected addresses, no matter how long they have been ownerless. If
// several allocations protect an address, the longest TTL wins. An interrupted release
// continues, because the address was not protected when the release began.
func (p *protections) hold(f *Facts, decisions []Decision) {
	if p.unread == "" && p.empty() {
		return // it is certain that no address is protected
	}
	for i := range decisions {
		if d := &decisions[i]; d.waits() && d.Allocation.HoldsAddress() && !d.Allocation.Interrupted {
			p.holdOne(f.now, d)
		}
	}
}

// holdOne is hold for one decision.
func (p *protections) holdOne(now time.Time, d *Decision) {
	if p.unread != "" {
		d.protect(p.unread, time.Time{})
		return
	}
	ends := d.Due // of the grace period
	if d.Verdict == Orphaned {
		ends = now // its grace period may end a little early
	}
	for _, protector := range p.over(d.Allocation) {
		d.remembered = true // if its release fails, the TTL does not begin again
		until, expires := protector.Protects.Until(d.FirstSeen)
		switch name := protector.Name(); {
		case protector.Unreadable != "":
			d.protect(name+" may name it: "+protector.Unreadable, time.Time{})
			return
		case !expires:
			d.protect(name+" keeps it for good", time.Time{})
			return
		case now.Before(until) && ends.Before(until):
			d.protect(name+" keeps it until "+Stamp(until), until)
			ends = until
		}
	}
}

// protect holds the allocation until the given time; for good if that is the zero time. The
// ledger keeps FirstSeen.
func (d *Decision) protect(note string, until time.Time) {
	source := fromProtection
	if d.Allocation.Protects != nil {
		source = fromReservation
	}
	d.Verdict = Held
	d.Reason = Protected
	d.Note = note
	d.Due = until
	d.Evidence = []Evidence{{source, note}}
	d.ChangedBy = byProtection
	d.remembered = true
}

// release decides on the allocations that protect others. They are released after the
// allocations that they protect, never before.
func (p *protections) release(f *Facts, decisions []Decision) {
	if p.empty() {
		return
	}
	protected := make(map[string][]int) // by the identity of the protector
	for i := range decisions {
		a := decisions[i].Allocation
		if !a.HoldsAddress() {
			continue
		}
		for _, protector := range p.over(a) {
			protected[protector.ID()] = append(protected[protector.ID()], i)
		}
	}
	for i := range decisions {
		if d := &decisions[i]; d.Allocation.Protects != nil && d.waits() {
			p.releaseOne(f.now, d, decisions, protected[d.Allocation.ID()])
		}
	}
}

// releaseOne is release for one decision. The others are the decisions on the
// allocations that this one protects.
func (p *protections) releaseOne(now time.Time, d *Decision, decisions []Decision, others []int) {
	until, ends := d.Allocation.Protects.Until(d.FirstSeen)
	switch {
	case !ends:
		d.protect("it has no TTL", time.Time{})
		return
	case !d.Allocation.Protects.Deletable:
		d.protect("the policy does not allow its release", time.Time{})
		return
	case p.incomplete:
		d.protect("not every store could be listed", time.Time{})
		return
	}
	due := until
	if d.Verdict == Suspected {
		due = latest(due, d.Due)
	}
	for _, i := range others {
		other := &decisions[i]
		switch {
		case other.Verdict == InUse:
			d.Ruling = Ruling{
				Verdict: InUse, Reason: AddressInUse, Rule: d.Rule, ChangedBy: byProtection,
				Note:     other.Allocation.Label() + " is in use: " + string(other.Reason),
				Evidence: other.Evidence,
			}
			d.known = unique.Make(knowledge{})
			return
		case other.Verdict == Held && (other.Reason != Protected || other.Due.IsZero()):
			d.protect(other.Allocation.Label()+" is held: "+string(other.Reason), time.Time{})
			return
		}
		if other.Verdict != Orphaned {
			due = latest(due, other.Due)
		}
	}
	d.Due = due
	d.After = others
	d.remembered = true
	switch {
	case now.Before(until):
		d.protect("until "+Stamp(until), due)
	case now.Before(due):
		d.Verdict = Suspected
	default:
		d.Verdict = Orphaned
	}
}

// keepGroups decides on the allocations of each group together. If one of them is
// kept, its siblings are kept. If one of them must wait, its siblings wait with it.
func keepGroups(decisions []Decision) {
	groups, waiting := make(map[string][]int), waitingGroups(decisions)
	for i := range decisions {
		if group := decisions[i].Allocation.Group; waiting[group] {
			groups[group] = append(groups[group], i)
		}
	}
	for _, members := range groups {
		if len(members) > 1 {
			keepGroup(decisions, members)
		}
	}
}

// waitingGroups returns the groups of which an allocation waits.
func waitingGroups(decisions []Decision) map[string]bool {
	waiting := make(map[string]bool)
	for i := range decisions {
		if d := &decisions[i]; d.waits() && d.Allocation.Group != "" {
			waiting[d.Allocation.Group] = true
		}
	}
	return waiting
}

// keepGroup is keepGroups for one group.
func keepGroup(decisions []Decision, members []int) {
	var due time.Time
	verdict := Orphaned
	for _, i := range members {
		d := &decisions[i]
		if !d.waits() {
			keepSiblings(decisions, members, *d)
			return
		}
		due = latest(due, d.Due)
		if d.Verdict == Suspected {
			verdict = Suspected
		}
	}
	for _, i := range members {
		d := &decisions[i]
		if d.Verdict == verdict && d.Due.Equal(due) {
			continue
		}
		d.Verdict = verdict
		d.Due = due
		d.ChangedBy = byGroup
	}
}

// keepSiblings holds the siblings of an allocation that is kept. If the hold is
// temporary, the siblings keep their FirstSeen; otherwise two of them would reset each
// other for ever.
func keepSiblings(decisions []Decision, members []int, kept Decision) {
	for _, i := range members {
		d := &decisions[i]
		if !d.waits() {
			continue
		}
		d.Verdict = Held
		d.Reason = SiblingKept
		d.ChangedBy = byGroup
		d.remembered, d.keepSeen = kept.remembered, kept.keepSeen
		d.Note = "its sibling " + kept.Allocation.Label() + " is kept: " + string(kept.Reason)
		d.Evidence = append([]Evidence{{fromSiblings, d.Note}}, kept.Evidence...)
		d.Due = time.Time{}
		if !d.remembered {
			d.FirstSeen = time.Time{}
		}
	}
}
