package judge

import (
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// longestWait is the longest that a person is asked to wait for a run that looks twice.
const longestWait = 10 * time.Minute

// Waits returns, by the decisions, the --wait of a run that begins now and looks twice in place of the
// grace period: with --grace-period=60s and, for what is too young, --min-age=0s. It has only what such a
// run releases within ten minutes, and no allocation without an address. The durations are whole minutes.
//
// The rules say when: by the same facts and a policy with these terms. What a rule of the policy sets
// stays, as it does with the flags. Siblings wait for each other.
func (v Verdicts) Waits() map[int]time.Duration {
	due, ofGroup := make(map[int]time.Time), make(map[string]time.Time)
	var old, young *Facts
	for i := range v.Decisions {
		d := &v.Decisions[i]
		if d.Verdict != Suspected && d.Reason != TooYoung || !d.Allocation.HoldsAddress() || d.facts == nil {
			continue
		}
		if old == nil { // all decisions have the same facts
			old = d.facts.under(d.facts.policy.MinAge)
			young = d.facts.under(new(policy.Duration))
		}
		by := old
		if d.Reason == TooYoung {
			by = young
		}
		if r := d.caseIn(by).ask(); r.waits() {
			due[i] = r.Due
			ofGroup[d.Allocation.Group] = latest(ofGroup[d.Allocation.Group], r.Due)
		}
	}
	blocked := make(map[string]bool) // groups of which something is kept for another reason
	for i := range v.Decisions {
		if _, goes := due[i]; !goes {
			blocked[v.Decisions[i].Allocation.Group] = true
		}
	}
	waits := make(map[int]time.Duration, len(due))
	for i, at := range due {
		if group := v.Decisions[i].Allocation.Group; group != "" {
			at = ofGroup[group]
			if blocked[group] {
				continue
			}
		}
		if wait := at.Sub(v.Decisions[i].facts.now); wait <= longestWait {
			waits[i] = (max(wait, time.Minute) + time.Second).Truncate(time.Minute) + time.Minute // the ledger rounds up
		}
	}
	return waits
}

// Ripens returns Due or, of what is too young, when a run releases it: once it is old enough and its grace period, which
// has begun, is over. It is zero if no time decides.
func (d *Decision) Ripens() time.Time {
	if d.Reason != TooYoung || d.facts == nil {
		return d.Due
	}
	c := d.caseIn(d.facts)
	r := c.askFrom(d.Rule) // the rules after this one
	if !r.waits() {
		return time.Time{}
	}
	return latest(r.Due, c.Created.Add(c.minAge()))
}

// under returns the facts under a grace period of a minute, and a minimum age.
func (f *Facts) under(minAge *policy.Duration) *Facts {
	fresh, terms := *f, *f.policy
	terms.GracePeriod, terms.MinAge = &policy.Duration{Duration: time.Minute}, minAge
	fresh.policy = &terms
	return &fresh
}
