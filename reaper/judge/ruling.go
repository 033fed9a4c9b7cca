package judge

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unique"

	"github.com/ip-reaper/ip-reaper/reaper/census"
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

var verdictWords = [...]string{Held: "held", InUse: "inUse", Suspected: "suspected", Orphaned: "orphan"}

// String returns the word that reports use.
func (v Verdict) String() string { return verdictWords[v] }

// A Decision is a ruling on one allocation.
type Decision struct {
	// Allocation is the allocation with what the rules knew about it from outside its store.
	Allocation *ipam.Allocation

	Ruling

	// claimants are those whose annotations, or whose guests, alone keep the allocation. The zero
	// Claimant stands for the pods that hide addresses.
	claimants []census.Claimant

	present     bool  // the pod that the allocation names existed, if that matters
	nodeLearned bool  // the node of its owner is not from the store
	at          int32 // its place in the inventory
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

	Ownerless  bool // the allocation has no owner, whether it is kept or not
	ByName     bool // it is in use only because its pod exists, which shows other addresses and hides none
	remembered bool // the ledger keeps FirstSeen
	keepSeen   bool // the ledger keeps the time that it has, if any
}

// The steps after the rules that change decisions.
const (
	byProtection = "protection"
	byGroup      = "group"
)

// waits reports whether the allocation is ownerless and only its grace period may keep
// it.
func (r *Ruling) waits() bool { return r.Verdict == Suspected || r.Verdict == Orphaned }

// Leaks reports whether the allocation leaked. What is too young may be that of an ADD in progress.
func (r *Ruling) Leaks() bool { return r.Ownerless && r.Reason != TooYoung }

// PlainlyInUse reports whether the allocation is in use, and there is nothing to say about it: only
// one source says so, and no release of it was interrupted.
func (d *Decision) PlainlyInUse() bool {
	return d.Verdict == InUse && d.Note == "" && d.ChangedBy == "" && len(d.Evidence) == 1 && !d.Allocation.Interrupted
}

// MarshalJSON writes the verdict as its word.
func (v Verdict) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }

// A Reason says why an allocation got its verdict. Reasons are stable words that users
// script against.
type Reason string

// The reasons. Rules, groups and protections give them; docs/verdicts.md says when.
const (
	PodPresent       Reason = "PodPresent"
	SandboxPresent   Reason = "SandboxPresent"
	AddressInUse     Reason = "AddressInUse"
	PodAbsent        Reason = "PodAbsent"
	PodReplaced      Reason = "PodReplaced"
	PodMoved         Reason = "PodMoved"
	SandboxReplaced  Reason = "SandboxReplaced"
	PodFinished      Reason = "PodFinished"
	SandboxAbsent    Reason = "SandboxAbsent"
	OutOfScope       Reason = "OutOfScope"
	RuleHold         Reason = "RuleHold"
	Retained         Reason = "Retained"
	Protected        Reason = "Protected"
	OwnerUnknown     Reason = "OwnerUnknown"
	NotPodOwned      Reason = "NotPodOwned"
	NodeForeign      Reason = "NodeForeign"
	NodeUnreachable  Reason = "NodeUnreachable"
	TerminationStuck Reason = "TerminationStuck"
	StaticPod        Reason = "StaticPod"
	StoreUnseen      Reason = "StoreUnseen"
	SiblingKept      Reason = "SiblingKept"
	EmptyHandle      Reason = "EmptyHandle"
	TooYoung         Reason = "TooYoung"
	RestoredLately   Reason = "Restored"
	UnknownField     Reason = "UnknownField"
	BeingDeleted     Reason = "BeingDeleted"
	NoToken          Reason = "NoToken"
	Unreadable       Reason = "Unreadable"
	NoCensus         Reason = "NoCensus"
)

// Words returns the reason as people write it: NodeUnreachable is "node unreachable".
func (r Reason) Words() string {
	return strings.ToLower(wordEnd.ReplaceAllString(string(r), "$1 $2"))
}

var wordEnd = regexp.MustCompile(`([a-z])([A-Z])`)

// Evidence is what one source says about an allocation.
type Evidence struct {
	Source string `json:"source"` // such as "pod status" or "node n3"
	Says   string `json:"says"`
}

// DueBecause says what alone makes an orphan due, by its evidence: that a node was fenced, or that the policy
// releases such allocations. It is empty if nothing does.
func DueBecause(evidence []Evidence) string {
	var why []string
	for _, one := range evidence {
		switch {
		case one.Source == fromPolicy:
			why = append(why, one.Says+" in the policy")
		case strings.HasPrefix(one.Source, "node "):
			why = append(why, one.Source+strings.TrimPrefix(one.Says, "it"))
		}
	}
	return strings.Join(why, ", and ")
}

// The sources that have no name of their own.
const (
	fromStore      = "store"
	fromPolicy     = "policy"
	fromPods       = "list of pods"
	fromRuntime    = "container runtime"
	fromSiblings   = "group"
	fromProtection = "protection"
	fromLedger     = "ledger"
	fromNodes      = "list of nodes"
	fromHandle     = "handle" // what the store calls the owner
)

// The prefixes of sources that are a node of a store, and a StatefulSet.
const (
	fromStoreNode   = string(census.KindStoreNode) + " "
	fromStatefulSet = "StatefulSet "
)

// Stamp formats a time for people.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// lostBy says why the pod no longer has the allocation: it has ended, or is another pod
// of the same name.
func lostBy(p census.Pod) Evidence {
	if p.Finished {
		return Evidence{census.PodStatus, "the pod has ended"}
	}
	return Evidence{fromPods, "the pod of that name has the UID " + p.UID}
}

// NotReady says of a node that is not ready since when, and whether it is fenced.
func NotReady(n census.Node) Evidence {
	says := "it is "
	if n.OutOfService {
		says += "fenced by the taint out-of-service"
		if !n.Tainted.IsZero() {
			says += " since " + Stamp(n.Tainted)
		}
		says += ", and "
	}
	says += "not ready"
	if !n.Since.IsZero() {
		says += " since " + Stamp(n.Since)
	}
	return Evidence{"node " + n.Name, says}
}
