package judge

import (
	"fmt"
	"time"
)

func beingDeleted(c *Case) (Ruling, bool) {
	if c.Deleting == "" {
		return noMatch()
	}
	return match(c.Deleting, Evidence{fromStore, c.Deleting})
}

func protectedByStore(c *Case) (Ruling, bool) {
	if c.Protected == "" || c.Interrupted {
		return noMatch()
	}
	return match(c.Protected, Evidence{fromStore, c.Protected})
}

func outOfScope(c *Case) (Ruling, bool) {
	if c.terms().InScope {
		return noMatch()
	}
	why := c.policy.Outside(c.Owner.Pod.Namespace)
	return match(why, Evidence{fromPolicy, why})
}

func heldByRule(c *Case) (Ruling, bool) {
	terms := c.terms()
	if !terms.Hold {
		return noMatch()
	}
	note := fmt.Sprintf("held by rules[%d]: %s", terms.Rule, c.policy.Rules[terms.Rule].Match)
	return match(note, Evidence{fromPolicy, note})
}

func restoredLately(c *Case) (Ruling, bool) {
	at := c.restoredAt()
	until := at.Add(c.policy.Journal.RestoreHold.Duration)
	if at.IsZero() || !c.now.Before(until) || c.terms().ReleaseRestored {
		return noMatch()
	}
	return match("a restore put it back; held until "+Stamp(until), Evidence{fromLedger, "a restore put it back at " + Stamp(at)})
}

func unknownField(c *Case) (Ruling, bool) {
	if c.UnknownField == "" {
		return noMatch()
	}
	note := "it has an unknown field: " + c.UnknownField
	return match(note, Evidence{fromStore, note})
}

func noToken(c *Case) (Ruling, bool) {
	if c.Token != "" {
		return noMatch()
	}
	return match("", Evidence{fromStore, "the allocation has no token that would reveal a change"})
}

// tooYoung begins the grace period, which counts from now on. An allocation from the future
// has a wrong clock, and ripen waits for it. For a blank one, sandboxGone waits.
func tooYoung(c *Case) (Ruling, bool) {
	minAge, age := c.minAge(), c.now.Sub(c.Created)
	if c.Interrupted || c.Blank || c.Created.IsZero() || age < 0 || age >= minAge {
		return noMatch()
	}
	gone := !c.present() // otherwise a live pod may have it, and it only looks replaced
	return Ruling{
		FirstSeen: c.since(), remembered: gone, Note: "it is too young until " + Stamp(c.Created.Add(minAge)),
		Evidence: []Evidence{{fromStore, "it was allocated at " + Stamp(c.Created)}, c.ageTermOf()},
	}, true
}

// termOf says how long a term of the allocation is, and which rule of the policy may have
// set it.
func (c *Case) termOf(field string, d time.Duration) string {
	says := fmt.Sprintf("%s is %v", field, d)
	if rule := c.terms().Rule; rule >= 0 {
		says += fmt.Sprintf(", by rules[%d]: %s", rule, c.policy.Rules[rule].Match)
	}
	return says
}

// ageTermOf says below what age the allocation is not suspected, and why.
func (c *Case) ageTermOf() Evidence {
	if minAge := c.minAge(); minAge > c.terms().MinAge {
		return Evidence{fromRuntime, fmt.Sprintf("it may still make a sandbox that is younger than %v", minAge)}
	}
	return Evidence{fromPolicy, c.termOf("minAge", c.terms().MinAge)}
}
