package judge

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// protections finds what protects an allocation.
type protections struct {
	unread string // why a protector could not be read; empty if all were
	byIP   map[netip.Addr][]*ipam.Protection
	byPod  map[ipam.PodRef][]*ipam.Protection

	// One for each namespace is enough, since it never ends. The empty namespace, of
	// allocations without a pod, has the first one of any namespace.
	byNamespace map[string][]*ipam.Protection
	all         []*ipam.Protection
	ranges      []*ipam.Protection // those with Ranges
}

// protectionsOf indexes the protections of an inventory.
func protectionsOf(inv ipam.Inventory) protections {
	p := protections{
		byIP: make(map[netip.Addr][]*ipam.Protection), byPod: make(map[ipam.PodRef][]*ipam.Protection),
		byNamespace: make(map[string][]*ipam.Protection),
	}
	for _, l := range inv.Listings {
		if l.Protects && !l.Whole {
			p.unread = l.Backend + " could not be read: " + l.Message
		}
		for i := range l.Protections {
			p.add(&l.Protections[i])
		}
	}
	return p
}

// add indexes a protection.
func (p *protections) add(one *ipam.Protection) {
	for _, ip := range one.IPs {
		p.byIP[ip] = append(p.byIP[ip], one)
	}
	if one.Pod != (ipam.PodRef{}) {
		p.byPod[one.Pod] = append(p.byPod[one.Pod], one)
	}
	for _, namespace := range one.Namespaces {
		for _, of := range []string{namespace, ""} {
			if len(p.byNamespace[of]) == 0 {
				p.byNamespace[of] = []*ipam.Protection{one}
			}
		}
	}
	if len(one.Ranges) > 0 {
		p.ranges = append(p.ranges, one)
	}
	if one.All && len(p.all) == 0 {
		p.all = []*ipam.Protection{one}
	}
}

// over returns the protections of an allocation.
func (p *protections) over(a *ipam.Allocation) []*ipam.Protection {
	found := slices.Concat(p.byIP[a.IP], p.byPod[a.Owner.Pod], p.byNamespace[a.Owner.Pod.Namespace], p.all)
	for _, one := range p.ranges {
		if one.Ranges.Contains(a.IP) {
			found = append(found, one)
		}
	}
	return found
}

// hold keeps protected addresses, no matter how long they have been ownerless. If
// an address has several protections, the longest TTL wins. An interrupted release
// continues, because the address was not protected when the release began.
func (p *protections) hold(f *Facts, decisions []Decision) {
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
	for _, one := range p.over(d.Allocation) {
		d.remembered = true // if its release fails, the TTL does not begin again
		until, expires := one.Until(d.FirstSeen)
		switch {
		case one.Unreadable != "":
			d.protect(one.Name+" may name it: "+one.Unreadable, time.Time{})
			return
		case !expires:
			d.protect(one.Name+" keeps it for good", time.Time{})
			return
		case ends.Before(until):
			d.protect(one.Name+" keeps it until "+Stamp(until), until)
			ends = until
		}
	}
}

// protect holds the allocation until the given time; for good if that is the zero time. The
// ledger keeps FirstSeen.
func (d *Decision) protect(note string, until time.Time) {
	d.Verdict = Held
	d.Reason = Protected
	d.Note = note
	d.Due = until
	d.Evidence = []Evidence{{fromProtection, note}}
	d.ChangedBy = byProtection
	d.remembered = true
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
