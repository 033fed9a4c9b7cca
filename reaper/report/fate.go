package report

import (
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A Fate is what became of an allocation in a run or in a restore, and so of its address. The greater one
// keeps the address more firmly. Unknown is that of an attempt that is not decided yet: Entry.Fate works out
// the fate of an entry from the outcome of its attempt and the verdict, and is never Unknown.
type Fate uint8

// The fates. Those up to Protected are of what leaked.
const (
	Unknown   Fate = iota
	Released       // the store no longer holds it
	Deleting       // the store is deleting it, and holds it until its finalizers are gone
	Planned        // in a dry run: a real run would release it
	Refused        // it is due, and a limit refused the plan
	NotBegun       // it is due and stays: the run was interrupted, its time was over, or others may have acted since its plan
	Due            // its grace period is over, and it was not to be released
	Failed         // it is not known to be released
	Waiting        // its grace period is not over
	Held           // kept for a reason other than its grace period
	Protected      // something outside keeps it
	NotPods        // it is not a pod's
	Other          // kept, and nothing says that it leaked
	Unsure         // as Failed, and by now another owner may have it
	Changed        // it changed hands during the run, and stays
	Undecided      // nobody can tell whether it leaked
	ByName         // in use only because its pod exists, which shows other addresses
	Unmended       // in use, and its owner did not get it back whole
	Returned       // its owner came back during the run, and has it
	InUse          // in use
	Kept           // of an attempt: it stays as what its verdict says

	// Of a restore, from what is there to what is furthest from it.
	AlreadyThere // the store held it already; nothing was written
	Restored     // the store holds the allocation again
	Restorable   // in a dry run: its place is free, and a real one would put it back
	Taken        // its place or its address has another owner; nothing was written
	NotRestored  // it is not known to be back
)

// words has the word of each fate that reports show.
var words = [...]string{
	Released:     "released",
	Deleting:     "deleting",
	Planned:      "planned",
	Refused:      "refused",
	NotBegun:     "notBegun",
	Due:          "due",
	Failed:       "failed",
	Waiting:      "waiting",
	Held:         "held",
	Changed:      "changed",
	Undecided:    "undecided",
	Returned:     "returned",
	Kept:         "kept",
	AlreadyThere: "present",
	Restored:     "restored",
	Restorable:   "planned",
	Taken:        "taken",
	NotRestored:  "failed",
}

// String returns the word that reports use.
func (f Fate) String() string { return words[f] }

// MarshalText writes the fate as its word.
func (f Fate) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Status returns the one of Released, Due, Waiting, Held, Undecided and InUse by which an address counts;
// Unknown if it is not known to have leaked.
func (f Fate) Status() Fate {
	switch f {
	case Deleting, Planned, Refused, NotBegun, Failed:
		return Due
	case Protected:
		return Held
	case ByName, Unmended, Returned:
		return InUse
	case Released, Due, Waiting, Held, Undecided, InUse:
		return f
	default:
		return Unknown
	}
}

// Leaked reports whether it is that of an allocation without an owner.
func (f Fate) Leaked() bool { return f >= Released && f <= Protected }

// planned reports whether the plan has it.
func (f Fate) planned() bool { return f == Released || f == Planned || f == Refused }

// Fate returns what became of the allocation.
func (e *Entry) Fate() Fate {
	switch {
	case e.Outcome == Failed && e.Verdict == judge.InUse:
		return Unmended
	case e.Outcome == Failed && !e.Leaked:
		return Unsure
	case e.Outcome != Unknown && e.Outcome != Kept:
		return e.Outcome
	case e.Verdict == judge.InUse && e.ByName:
		return ByName
	case e.Verdict == judge.InUse:
		return InUse
	case e.Verdict == judge.Orphaned:
		return Due
	case e.Verdict == judge.Suspected:
		return Waiting
	case e.Reason == judge.NotPodOwned:
		return NotPods
	case !e.Leaked && slices.Contains([]judge.Reason{judge.OwnerUnknown, judge.NodeForeign, judge.Unreadable, judge.TooYoung}, e.Reason):
		return Undecided
	case !e.Leaked:
		return Other
	case e.Reason == judge.Protected:
		return Protected
	default:
		return Held
	}
}
