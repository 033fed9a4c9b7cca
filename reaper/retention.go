package reaper

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// A Retention is what an entry keeps back, beside the addresses of the pod that it
// names: these, as long as their pod is not gone for longer than the TTL; for good
// where that is nil.
type Retention struct {
	IPs     []netip.Addr
	TTL     *time.Duration
	Deleted time.Time // when the pod went; zero where nobody knows

	// Deletable is set where the policy has the entry released after what it
	// kept back.
	Deletable bool
}

// until returns when the retention ends, for a pod that was first seen gone at
// this time; false where it never does.
func (t Retention) until(firstSeen time.Time) (time.Time, bool) {
	if t.TTL == nil {
		return time.Time{}, false
	}
	from := firstSeen
	if !t.Deleted.IsZero() {
		from = t.Deleted
	}
	return from.Add(*t.TTL), true
}

// keepers are the entries that keep others back.
type keepers struct {
	unread string // why they could not be listed; empty if they were
	blind  bool   // there may be entries that they keep back, and nobody listed
	byIP   map[netip.Addr][]Reservation
	byPod  map[PodRef][]Reservation
}

// keepersOf finds them in an inventory.
func keepersOf(inv Inventory) keepers {
	k := keepers{
		byIP: make(map[netip.Addr][]Reservation), byPod: make(map[PodRef][]Reservation),
		blind: !inv.complete(),
	}
	for _, l := range inv.Listings {
		if l.Backend == ReservedIPsName && l.Status != StatusOK {
			k.unread = "what is reserved could not be read: " + l.Message
		}
		for _, u := range l.Units {
			for _, r := range u.Reservations {
				k.add(r)
			}
		}
	}
	return k
}

// add takes up an entry that keeps others back.
func (k *keepers) add(r Reservation) {
	if r.Retains == nil {
		return
	}
	for _, ip := range r.Retains.IPs {
		k.byIP[ip] = append(k.byIP[ip], r)
	}
	if r.Owner.Pod != (PodRef{}) {
		k.byPod[r.Owner.Pod] = append(k.byPod[r.Owner.Pod], r)
	}
}

// of returns the entries that keep this one back.
func (k *keepers) of(r Reservation) []Reservation {
	return slices.Concat(k.byIP[r.IP], k.byPod[r.Owner.Pod])
}

// hold has what is kept back wait, however long it has been ownerless. Of several
// that keep it, the longest counts. What a crash left half released stays ripe: it
// was not kept when its release began.
func (k *keepers) hold(now time.Time, v *Verdict) {
	ownerless := v.Standing == Suspected || v.Standing == Orphaned
	if !ownerless || !v.Reservation.holdsAddress() || v.Reservation.Interrupted {
		return
	}
	if k.unread != "" {
		v.keepBack(k.unread)
		return
	}
	for _, keeper := range k.of(v.Reservation) {
		v.remember = true // a release that fails does not begin the TTL anew
		until, ends := keeper.Retains.until(v.FirstSeen)
		switch name := keeper.Unit + " " + keeper.Key; {
		case !ends:
			v.keepBack(name + " keeps it for good")
			return
		case now.Before(until) && v.Due.Before(until):
			v.keepBack(name + " keeps it until " + until.UTC().Format(time.RFC3339))
			v.Due = until
		}
	}
}

// keepBack turns a verdict into one that is held, and goes on to count since when
// the entry has been ownerless.
func (v *Verdict) keepBack(note string) {
	v.Standing, v.Reason, v.Note, v.remember = Held, Reserved, note, true
	v.Due, v.orphan = time.Time{}, Orphan{}
}

// judge concludes the verdicts of the entries that keep others back: they go after
// those, not before.
func (k *keepers) judge(now time.Time, verdicts []Verdict) {
	if len(k.byIP)+len(k.byPod) == 0 {
		return
	}
	kept := make(map[string][]int) // by the identity of the keeper
	for i, v := range verdicts {
		if !v.Reservation.holdsAddress() {
			continue
		}
		for _, keeper := range k.of(v.Reservation) {
			kept[keeper.id()] = append(kept[keeper.id()], i)
		}
	}
	for i := range verdicts {
		if verdicts[i].Reservation.Retains != nil {
			k.outlive(now, &verdicts[i], verdicts, kept[verdicts[i].Reservation.id()])
		}
	}
}

// outlive concludes the verdict of one entry that keeps those others back.
func (k *keepers) outlive(now time.Time, v *Verdict, verdicts []Verdict, kept []int) {
	if v.Standing != Suspected && v.Standing != Orphaned {
		return
	}
	retains := v.Reservation.Retains
	until, ends := retains.until(v.FirstSeen)
	switch {
	case !ends:
		v.keepBack("it has no TTL")
		return
	case !retains.Deletable:
		v.keepBack("the policy has it stay")
		return
	case k.blind:
		v.keepBack("not every store could be read")
		return
	}
	due := latest(v.Due, until)
	for _, i := range kept {
		other := verdicts[i]
		switch {
		case other.Standing == InUse:
			*v = Verdict{Reservation: v.Reservation, Standing: InUse, Reason: AddressInUse, Note: other.Reservation.what() + " is in use: " + string(other.Reason)}
			return
		case other.Standing == Held && (other.Reason != Reserved || other.Due.IsZero()):
			v.keepBack(other.Reservation.what() + " is held: " + string(other.Reason))
			return
		}
		due = latest(due, other.Due)
	}
	v.Due, v.remember, v.after = due, true, kept
	switch {
	case now.Before(until):
		v.keepBack("until " + until.UTC().Format(time.RFC3339))
		v.Due = due
	case now.Before(due):
		v.Standing, v.orphan = Suspected, Orphan{}
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
func assessKeeper(p policy.Policy, c Census, r Reservation) finding {
	if c.began.IsZero() {
		return finding{Held, NoCensus, ""}
	}
	if len(r.Retains.IPs) == 0 && r.Owner.Pod == (PodRef{}) {
		return finding{Held, OwnerUnknown, "it names neither an address nor a pod"}
	}
	for _, ip := range r.Retains.IPs {
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
		if p.Retention.StatefulSets != policy.Ignore && c.wanted(r.Owner.Pod) {
			return finding{Held, Retained, "its StatefulSet brings the pod back"}
		}
		return finding{Suspected, PodAbsent, ""}
	default:
		return finding{Held, NoCensus, ""}
	}
}
