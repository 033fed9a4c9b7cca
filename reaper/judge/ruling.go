package judge

import (
	"encoding/json"
	"time"
	"unique"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Verdict is the result of a decision, in one word. The zero value keeps the
// allocation.
type Verdict int

// The verdicts.
const (
	Held      Verdict = iota // it is kept, for the reason of the decision
	InUse                    // an owner has it
	Suspected                // it is ownerless, and its grace period is not over
	Orphaned                 // it is ownerless, and its grace period is over
)

// String returns the word that reports use.
func (v Verdict) String() string {
	switch v {
	case InUse:
		return "inUse"
	case Suspected:
		return "suspected"
	case Orphaned:
		return "orphan"
	default:
		return "held"
	}
}

// A Decision is a ruling on one allocation.
type Decision struct {
	// Allocation is the allocation with what the rules knew about it from outside its store.
	Allocation *ipam.Allocation

	Ruling
	present     bool // the pod that the allocation names existed, if that matters
	nodeLearned bool // the node of its owner is not from the store
	facts       *Facts
	known       unique.Handle[knowledge] // for the ledger
}

// A Ruling says how an allocation was decided: the verdict, its reason and its evidence.
type Ruling struct {
	Verdict Verdict
	Reason  Reason

	// Rule is the number of the rule that matched, as docs/verdicts.md counts them: those of
	// NodeRules after those of Rules. It is 0 if none did.
	Rule int

	// ChangedBy is the step after the rules that changed their decision: byProtection or
	// byGroup. It is empty if none did.
	ChangedBy string

	// Evidence has the sources of the decision, the most important one first. It may
	// be empty.
	Evidence []Evidence

	// Note adds a detail to the reason, such as the name of the pod that shows the
	// address. If an allocation in use has a note, store and pods disagree, and an
	// operator should look.
	Note string

	// FirstSeen is when a run first saw the allocation ownerless, without a break
	// since. Due is when its grace period or its protection ends. Both are zero
	// unless the allocation is suspected, an orphan, too young, protected for a time,
	// or a sibling of such an allocation. Due is also zero if it is kept for good, or
	// is too young.
	FirstSeen time.Time
	Due       time.Time

	Ownerless  bool  // the allocation has no owner, whether it is kept or not
	remembered bool  // the ledger keeps FirstSeen
	keepSeen   bool  // the ledger keeps the time that it has, if any
	After      []int // the decisions whose allocations must be released first
}

// The steps after the rules that change decisions.
const (
	byProtection = "protection"
	byGroup      = "group"
)

// waits reports whether the allocation is ownerless and only its grace period may keep
// it.
func (r *Ruling) waits() bool { return r.Verdict == Suspected || r.Verdict == Orphaned }

// PlainlyInUse reports whether the allocation is in use, and there is nothing to say about it: only
// one source says so, and no release of it was interrupted.
func (d *Decision) PlainlyInUse() bool {
	return d.Verdict == InUse && d.Note == "" && d.ChangedBy == "" && len(d.Evidence) == 1 && !d.Allocation.Interrupted
}

// MarshalJSON writes the verdict as its word.
func (v Verdict) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }
