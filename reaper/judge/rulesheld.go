package judge

import (
	"fmt"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

func beingDeleted(_ *Facts, a *ipam.Allocation) (Ruling, bool) {
	if a.Deleting == "" {
		return noMatch()
	}
	return match(a.Deleting, Evidence{fromStore, a.Deleting})
}

func protectedByStore(_ *Facts, a *ipam.Allocation) (Ruling, bool) {
	if a.Protected == "" || a.Interrupted {
		return noMatch()
	}
	return match(a.Protected, Evidence{fromStore, a.Protected})
}

func outOfScope(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if f.terms(a).InScope {
		return noMatch()
	}
	why := f.policy.Outside(a.Owner.Pod.Namespace)
	return match(why, Evidence{fromPolicy, why})
}

func heldByRule(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	terms := f.terms(a)
	if !terms.Hold {
		return noMatch()
	}
	note := fmt.Sprintf("held by rules[%d]: %s", terms.Rule, f.policy.Rules[terms.Rule].Match)
	return match(note, Evidence{fromPolicy, note})
}

func restoredLately(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	at := f.restoredAt(a)
	until := at.Add(f.policy.Journal.RestoreHold.Duration)
	if at.IsZero() || !f.now.Before(until) || f.terms(a).ReleaseRestored {
		return noMatch()
	}
	return match("a restore put it back; held until "+Stamp(until), Evidence{fromLedger, "a restore put it back at " + Stamp(at)})
}

func unknownField(_ *Facts, a *ipam.Allocation) (Ruling, bool) {
	if a.UnknownField == "" {
		return noMatch()
	}
	note := "it has an unknown field: " + a.UnknownField
	return match(note, Evidence{fromStore, note})
}

func noToken(_ *Facts, a *ipam.Allocation) (Ruling, bool) {
	if a.Token != "" {
		return noMatch()
	}
	return match("", Evidence{fromStore, "the allocation has no token that would reveal a change"})
}

// tooYoung begins the grace period, which counts from now on. An allocation from the future
// has a wrong clock, and ripen waits for it. For a blank one, sandboxGone waits.
func tooYoung(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	minAge, age := f.minAge(a), f.now.Sub(a.Created)
	if a.Interrupted || a.Blank || a.Created.IsZero() || age < 0 || age >= minAge {
		return noMatch()
	}
	gone := !f.present(a) // otherwise a live pod may have it, and it only looks replaced
	return Ruling{
		FirstSeen: f.since(a), remembered: gone, Note: "it is too young until " + Stamp(a.Created.Add(minAge)),
		Evidence: []Evidence{{fromStore, "it was allocated at " + Stamp(a.Created)}, f.ageTermOf(a)},
	}, true
}

// termOf says how long a term of the allocation is, and which rule of the policy may have
// set it.
func (f *Facts) termOf(a *ipam.Allocation, field string, d time.Duration) string {
	says := fmt.Sprintf("%s is %v", field, d)
	if rule := f.terms(a).Rule; rule >= 0 {
		says += fmt.Sprintf(", by rules[%d]: %s", rule, f.policy.Rules[rule].Match)
	}
	return says
}

// ageTermOf says below what age the allocation is not suspected, and why.
func (f *Facts) ageTermOf(a *ipam.Allocation) Evidence {
	if minAge := f.minAge(a); minAge > f.terms(a).MinAge {
		return Evidence{fromRuntime, fmt.Sprintf("it may still make a sandbox that is younger than %v", minAge)}
	}
	return Evidence{fromPolicy, f.termOf(a, "minAge", f.terms(a).MinAge)}
}
