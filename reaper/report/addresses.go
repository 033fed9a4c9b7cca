package report

import "github.com/ip-reaper/ip-reaper/reaper/judge"

// A Fate is what becomes of an address, from what keeps it most firmly.
type Fate int

// The fates. Protected and those after it are of what leaked.
const (
	Live      Fate = iota // in use
	Other                 // it is not a pod's, or could not be decided
	Protected             // something outside keeps it
	Held                  // kept for a reason other than its grace period
	Waiting               // its grace period is not over
	Due                   // its grace period is over, and a store still has it
	Freed                 // the run released it
)

// String returns the word that reports use for what leaked.
func (f Fate) String() string {
	return [...]string{Live: "in use", Other: "other", Protected: "held", Held: "held", Waiting: "waiting", Due: "due", Freed: "released"}[f]
}

// An Address is an address that some allocation leaked. Several allocations may hold it: the entry
// of a pool and its overlapping-range reservation, or the entries of two pools. An address is as
// free as its least free allocation.
type Address struct {
	Fate   Fate
	Reason judge.Reason // of the allocation that decides

	Planned bool // every allocation is released, or the plan has it
}

// fateOf returns the fate of an entry alone.
func fateOf(e *Entry) Fate {
	switch {
	case e.Outcome == Released:
		return Freed
	case e.Verdict == judge.InUse || e.Outcome == Returned:
		return Live
	case e.Outcome == Changed || !e.Leaked:
		return Other
	case e.Verdict == judge.Orphaned:
		return Due
	case e.Verdict == judge.Suspected:
		return Waiting
	case e.Reason == judge.Protected:
		return Protected
	default:
		return Held
	}
}

// take takes an allocation of the address into account.
func (a *Address) take(e *Entry) {
	fate := fateOf(e)
	a.Planned = a.Planned && (e.Outcome == Released || e.Outcome == Planned || e.Outcome == Refused)
	if fate < a.Fate || fate == a.Fate && (a.Reason == "" || a.Reason == judge.SiblingKept) {
		a.Fate, a.Reason = fate, e.Reason
	}
}

// Addresses returns the addresses of entries that leaked, each once, and the entries of each.
func Addresses(entries []Entry) (all []*Address, entriesOf map[*Address][]*Entry) {
	entriesOf = make(map[*Address][]*Entry)
	for i := range entries {
		a := entries[i].Address
		if a == nil || a.Fate < Protected {
			continue
		}
		if entriesOf[a] == nil {
			all = append(all, a)
		}
		entriesOf[a] = append(entriesOf[a], &entries[i])
	}
	return all, entriesOf
}

// Freed counts the addresses that the run freed. In a dry run it counts those that the plan would
// free, even if a limit refuses the plan.
func (r Report) Freed() int {
	n := 0
	all, _ := Addresses(r.Entries)
	for _, a := range all {
		if a.Fate == Freed || a.Planned && r.Run.DryRun {
			n++
		}
	}
	return n
}
