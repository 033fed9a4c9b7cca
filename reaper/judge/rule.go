package judge

// A Rule is one row of a table from which decisions come. The first rule that matches an
// allocation decides. Each row has all fields, so that none is forgotten.
type Rule struct {
	Reason Reason

	// Gives is the verdict. A rule that gives Orphaned gives Suspected as long as the
	// grace period lasts.
	Gives Verdict

	// Ownerless is set if the allocation has no owner, whether it is kept or not.
	Ownerless bool

	// Match reports whether the rule matches, and returns the Note and the Evidence
	// of the ruling. If time decides, it also returns the verdict and its times.
	// It is pure.
	Match func(*Case) (Ruling, bool)

	remedies func(Subject) []Remedy // what would change the decision

	Doc string // one sentence, for docs/verdicts.md
}

// keepsTime reports whether the ledger keeps the time since which the allocation has been
// ownerless, if it has one. Under these rules the allocation is ownerless, and only the
// policy or the run keeps it.
//
// While a node is unreachable, could not end the pod, or may run it without its mirror, the sandbox
// may be running, so the grace period begins again when that is over. While the store may be
// that of another cluster, the list of pods says nothing about it. A restore is an operator's word
// that the pod may be alive.
func (r *Rule) keepsTime() bool {
	switch r.Reason {
	case NodeUnreachable, TerminationStuck, StaticPod, StoreUnseen, RestoredLately:
		return false
	case PodFinished, SandboxReplaced:
		return true
	default:
		return r.Ownerless
	}
}

// match returns the decision of a rule that matches, with a note for people.
func match(note string, evidence ...Evidence) (Ruling, bool) {
	return Ruling{Note: note, Evidence: evidence}, true
}

// noMatch leaves the allocation to the next rule.
func noMatch() (Ruling, bool) { return Ruling{}, false }
