package reaper

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// A Protection is what an entry keeps back, beside the addresses of the pod that it
// names: these, as long as their pod is not gone for longer than the TTL; for good
// where that is nil.
type Protection struct {
	IPs     []netip.Addr
	TTL     *time.Duration
	Deleted time.Time // when the pod went; zero where nobody knows

	// Deletable is set where the policy has the entry released after what it
	// kept back.
	Deletable bool
}

// until returns when the protection ends, for a pod that was first seen gone at
// this time; false where it never does.
func (t Protection) until(firstSeen time.Time) (time.Time, bool) {
	if t.TTL == nil {
		return time.Time{}, false
	}
	from := firstSeen
	if !t.Deleted.IsZero() {
		from = t.Deleted
	}
	return from.Add(*t.TTL), true
}

// protections are the entries that keep others back.
type protections struct {
	unread string // why they could not be listed; empty if they were
	blind  bool   // there may be entries that they keep back, and nobody listed
	byIP   map[netip.Addr][]Allocation
	byPod  map[PodRef][]Allocation
}

// keepersOf finds them in an inventory.
func protectionsOf(inv Inventory) protections {
	k := protections{
		byIP: make(map[netip.Addr][]Allocation), byPod: make(map[PodRef][]Allocation),
		blind: !inv.complete(),
	}
	for _, l := range inv.Listings {
		if l.Protects && l.Status != StatusOK {
			k.unread = l.Backend + " could not be read: " + l.Message
		}
		for _, u := range l.Pools {
			for _, r := range u.Allocations {
				k.add(r)
			}
		}
	}
	return k
}

// add takes up an entry that keeps others back.
func (k *protections) add(r Allocation) {
	if r.Protects == nil {
		return
	}
	for _, ip := range r.Protects.IPs {
		k.byIP[ip] = append(k.byIP[ip], r)
	}
	if r.Owner.Pod != (PodRef{}) {
		k.byPod[r.Owner.Pod] = append(k.byPod[r.Owner.Pod], r)
	}
}

// of returns the entries that keep this one back.
func (k *protections) over(r Allocation) []Allocation {
	return slices.Concat(k.byIP[r.IP], k.byPod[r.Owner.Pod])
}

// hold has what is kept back wait, however long it has been ownerless. Of several
// that keep it, the longest counts. What a crash left half released stays ripe: it
// was not kept when its release began.
func (k *protections) hold(now time.Time, v *Decision) {
	ownerless := v.Verdict == Suspected || v.Verdict == Orphaned
	if !ownerless || !v.Allocation.holdsAddress() || v.Allocation.Interrupted {
		return
	}
	if k.unread != "" {
		v.protect(k.unread)
		return
	}
	for _, protection := range k.over(v.Allocation) {
		v.remember = true // a release that fails does not begin the TTL anew
		until, ends := protection.Protects.until(v.FirstSeen)
		switch name := protection.Pool + " " + protection.Key; {
		case !ends:
			v.protect(name + " keeps it for good")
			return
		case now.Before(until) && v.Due.Before(until):
			v.protect(name + " keeps it until " + until.UTC().Format(time.RFC3339))
			v.Due = until
		}
	}
}

// keepBack turns a verdict into one that is held, and goes on to count since when
// the entry has been ownerless.
func (v *Decision) protect(note string) {
	v.Verdict, v.Reason, v.Note, v.remember = Held, Protected, note, true
	v.Due, v.orphan = time.Time{}, Orphan{}
}

// judge concludes the verdicts of the entries that keep others back: they go after
// those, not before.
func (k *protections) judge(now time.Time, decisions []Decision) {
	if len(k.byIP)+len(k.byPod) == 0 {
		return
	}
	kept := make(map[string][]int) // by the identity of the protection
	for i, v := range decisions {
		if !v.Allocation.holdsAddress() {
			continue
		}
		for _, protection := range k.over(v.Allocation) {
			kept[protection.id()] = append(kept[protection.id()], i)
		}
	}
	for i := range decisions {
		if decisions[i].Allocation.Protects != nil {
			k.judgeProtection(now, &decisions[i], decisions, kept[decisions[i].Allocation.id()])
		}
	}
}

// outlive concludes the verdict of one entry that keeps those others back.
func (k *protections) judgeProtection(now time.Time, v *Decision, decisions []Decision, kept []int) {
	if v.Verdict != Suspected && v.Verdict != Orphaned {
		return
	}
	retains := v.Allocation.Protects
	until, ends := retains.until(v.FirstSeen)
	switch {
	case !ends:
		v.protect("it has no TTL")
		return
	case !retains.Deletable:
		v.protect("the policy has it stay")
		return
	case k.blind:
		v.protect("not every store could be read")
		return
	}
	due := latest(v.Due, until)
	for _, i := range kept {
		other := decisions[i]
		switch {
		case other.Verdict == InUse:
			*v = Decision{Allocation: v.Allocation, Verdict: InUse, Reason: AddressInUse, Note: other.Allocation.what() + " is in use: " + string(other.Reason)}
			return
		case other.Verdict == Held && (other.Reason != Protected || other.Due.IsZero()):
			v.protect(other.Allocation.what() + " is held: " + string(other.Reason))
			return
		}
		due = latest(due, other.Due)
	}
	v.Due, v.remember, v.after = due, true, kept
	switch {
	case now.Before(until):
		v.protect("until " + until.UTC().Format(time.RFC3339))
		v.Due = due
	case now.Before(due):
		v.Verdict, v.orphan = Suspected, Orphan{}
	}
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// assessKeeper looks for whoever may use what an entry keeps back.
func assessProtection(p policy.Policy, c Census, r Allocation) finding {
	if c.began.IsZero() {
		return finding{Held, NoCensus, ""}
	}
	if len(r.Protects.IPs) == 0 && r.Owner.Pod == (PodRef{}) {
		return finding{Held, OwnerUnknown, "it names neither an address nor a pod"}
	}
	for _, ip := range r.Protects.IPs {
		for _, pod := range c.showing(ip) {
			return finding{InUse, AddressInUse, ip.String() + " is shown by pod " + pod.Ref.String()}
		}
	}
	if r.Owner.Pod == (PodRef{}) {
		return finding{Suspected, PodAbsent, ""}
	}
	switch _, presence := c.pod(r.Owner.Pod); presence {
	case Present:
		return finding{InUse, PodPresent, ""}
	case Absent:
		if p.Protection.StatefulSets != policy.Ignore && c.wanted(r.Owner.Pod) {
			return finding{Held, Retained, "its StatefulSet brings the pod back"}
		}
		return finding{Suspected, PodAbsent, ""}
	default:
		return finding{Held, NoCensus, ""}
	}
}
