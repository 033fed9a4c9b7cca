package reaper

import (
	"fmt"
	"net/netip"
	"time"
)

// A secondLook asks the rules once more, by a new census. It asks about each
// allocation once: every sibling of a group is asked about for each of the others. It
// is for one goroutine.
type secondLook struct {
	census  Census
	facts   map[*Facts]*Facts // of the first look, with the new census
	answers map[question]answer
}

// A question is all that tells two orphans apart: a store may have two allocations of
// one key.
type question struct {
	backend, pool, key, token string
	ip                        netip.Addr
	owner                     Owner
	reason                    Reason
}

// An answer is when the owner was looked at, or why the allocation is kept.
type answer struct {
	looked time.Time
	err    error
}

func newSecondLook(census Census) *secondLook {
	return &secondLook{census: census, facts: make(map[*Facts]*Facts), answers: make(map[question]answer)}
}

// stillOrphaned asks the same rules about the same facts, with the new census. It
// returns when the owner was looked at, or an error that says why the allocation is
// kept.
func (l *secondLook) stillOrphaned(o Orphan) (time.Time, error) {
	it := o.allocation
	key := question{it.Backend, it.Pool, it.Key, it.Token, it.IP, it.Owner, o.reason}
	a, asked := l.answers[key]
	if !asked {
		a.looked, a.err = l.ask(o)
		l.answers[key] = a
	}
	return a.looked, a.err
}

// ask is stillOrphaned without the memory.
func (l *secondLook) ask(o Orphan) (time.Time, error) {
	looked, err := l.census.readAt(o.allocation.Owner.Pod)
	if err != nil {
		return time.Time{}, err
	}
	if l.facts[o.facts] == nil {
		l.facts[o.facts] = o.facts.again(l.census)
	}
	d := l.facts[o.facts].ask(o.allocation)
	switch {
	case d.Verdict == Orphaned && (d.Reason == o.reason || d.Reason == PodAbsent):
		return looked, nil
	case d.Verdict == InUse:
		return time.Time{}, fmt.Errorf("%w: now %s", ErrReturned, d.Reason)
	case d.Reason == NoCensus:
		return time.Time{}, fmt.Errorf("%w: its owner could not be read", ErrAgain)
	default:
		return time.Time{}, fmt.Errorf("%w: now %s", ErrKept, d.Reason)
	}
}
