package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A SecondLook asks the rules once more, with a new census. It asks about each
// allocation only once, although every sibling of a group needs the answers for all the
// others. It is for one goroutine.
type SecondLook struct {
	Ledger *ledger.Ledger // as others have saved it since the first look; nil if none has

	census  census.Census
	facts   map[*Facts]*Facts // of the first look, with the new census and ledger
	answers map[*ipam.Allocation]answer
}

// An answer is when the owner was looked at, or why the allocation is kept.
type answer struct {
	looked time.Time
	err    error
}

// NewSecondLook returns a second look with a new census.
func NewSecondLook(census census.Census) *SecondLook {
	return &SecondLook{census: census, facts: make(map[*Facts]*Facts), answers: make(map[*ipam.Allocation]answer)}
}

// StillOrphaned asks the same rules about the same facts of the orphan and its siblings, with the new census and
// ledger. It keeps what a restore put back since the first look, whatever the policy says. It returns when the first
// of their owners was looked at, or why the allocation is kept: an error that wraps ErrReturned, ErrKept or
// ErrAgain, and ErrNoWarrant for the zero Orphan.
func (l *SecondLook) StillOrphaned(o Orphan) (time.Time, error) {
	if o.decision == nil || o.decision.facts == nil {
		return time.Time{}, ipam.ErrNoWarrant
	}
	looked, err := l.stillOrphaned(o.decision)
	if err != nil {
		return time.Time{}, err
	}
	for _, sibling := range o.group {
		at, err := l.stillOrphaned(sibling)
		if err != nil {
			return time.Time{}, fmt.Errorf("%w (of its sibling %s)", err, sibling.Allocation.Label())
		}
		if at.Before(looked) {
			looked = at
		}
	}
	return looked, nil
}

// stillOrphaned is StillOrphaned for one allocation, which is asked about once.
func (l *SecondLook) stillOrphaned(first *Decision) (time.Time, error) {
	a, asked := l.answers[first.Allocation]
	if !asked {
		a.looked, a.err = l.ask(first)
		l.answers[first.Allocation] = a
	}
	return a.looked, a.err
}

// ask runs the rules again for one allocation.
func (l *SecondLook) ask(first *Decision) (time.Time, error) {
	looked, err := l.census.ReadAt(first.Allocation.Owner.Pod)
	if err != nil {
		return time.Time{}, err
	}
	if l.Ledger != nil {
		at := l.Ledger.RestoredAt(first.Allocation)
		if !at.IsZero() && !at.Equal(first.facts.ledger.RestoredAt(first.Allocation)) {
			return time.Time{}, fmt.Errorf("%w: a restore put it back at %s, after this run had listed it", ipam.ErrKept, Stamp(at))
		}
	}
	if l.facts[first.facts] == nil {
		l.facts[first.facts] = first.facts.with(l.census, l.Ledger)
	}
	d := first.caseIn(l.facts[first.facts]).ask()
	switch {
	case d.Verdict == Orphaned && (d.Reason == first.Reason || d.Reason == PodAbsent):
		return looked, nil
	case d.Verdict == InUse:
		return time.Time{}, fmt.Errorf("%w: now %s", ipam.ErrReturned, d.Reason)
	case d.Reason == NoCensus:
		return time.Time{}, fmt.Errorf("%w: its owner could not be read", ipam.ErrAgain)
	default:
		return time.Time{}, fmt.Errorf("%w: now %s", ipam.ErrKept, d.Reason)
	}
}

// FreshnessOf returns how old the looks of a batch may be: the least that any orphan in it allows.
func FreshnessOf(orphans []Orphan) time.Duration {
	least := ipam.FreshnessNeverAdopted
	for _, o := range orphans {
		if a := o.Allocation(); a != nil {
			least = min(least, a.Freshness())
		}
	}
	return least
}

// NeedsList reports whether the rules need a list of all pods: the store does not name
// the pod of the orphan or of a sibling, or a list of sandboxes decides.
func (o Orphan) NeedsList() bool {
	namesNone := func(d *Decision) bool {
		return d == nil || d.Allocation.Owner.Pod == ipam.PodRef{} || d.Allocation.ByRuntime
	}
	return namesNone(o.decision) || slices.ContainsFunc(o.group, namesNone)
}

// Owners returns the pods that the orphans and their siblings name, except where a list of
// sandboxes decides.
func Owners(orphans []Orphan) map[ipam.PodRef]struct{} {
	set := make(map[ipam.PodRef]struct{}, len(orphans))
	add := func(d *Decision) {
		if d != nil && !d.Allocation.ByRuntime && d.Allocation.Owner.Pod != (ipam.PodRef{}) {
			set[d.Allocation.Owner.Pod] = struct{}{}
		}
	}
	for _, o := range orphans {
		add(o.decision)
		for _, sibling := range o.group {
			add(sibling)
		}
	}
	return set
}
