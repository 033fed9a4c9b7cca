package judge

// An AskedRule is a rule that was asked. Only the last one can have matched.
type AskedRule struct {
	Number  int    `json:"number"` // as docs/verdicts.md counts
	Reason  Reason `json:"reason"`
	Doc     string `json:"doc"`
	Matched bool   `json:"matched"`
}

// AskedUntil returns the rules of the table that were asked until the one with this number
// matched. If none did, all rules of pods were asked.
func AskedUntil(number int) []AskedRule {
	first, end := 0, number
	switch {
	case number > firstNode:
		first = firstNode
	case number == 0:
		end = firstNode
	}
	asked := make([]AskedRule, 0, end-first)
	for i := first; i < end; i++ {
		asked = append(asked, AskedRule{Number: i + 1, Reason: table[i].Reason, Doc: table[i].Doc, Matched: i+1 == number})
	}
	return asked
}

// Remedies returns what would change the decision: what its rule advises, or the step behind the
// rules that keeps the allocation.
func (s Subject) Remedies() []Remedy {
	switch {
	case s.Rule == 0:
		return say(examine)(s)
	case s.ChangedBy == "" || s.Verdict == Suspected || s.Verdict == Orphaned:
		return table[s.Rule-1].remedies(s)
	case s.Reason == SiblingKept:
		return say("it goes with its sibling: {note}")(s)
	case s.Reason == Protected:
		return say(unprotect)(s)
	default:
		return say(standsIn)(s)
	}
}
