package judge

import (
	"cmp"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

// ripen decides on an ownerless allocation by time. It is suspected until its grace
// period is over, for at least the given time, and until the kubelet has ended its
// sandbox. Then it is an orphan. An interrupted release does not wait.
func (c *Case) ripen(atLeast time.Duration, note string, evidence ...Evidence) (Ruling, bool) {
	terms := c.terms()
	if c.Created.After(c.now) { // by the clock of its node: it counts as made now
		atLeast = max(atLeast, c.minAge())
	}
	r := Ruling{Verdict: Suspected, Note: note, FirstSeen: c.since()}
	grace := r.FirstSeen.Add(terms.Grace)
	other := r.FirstSeen.Add(atLeast)
	if until, why := c.ended(r.FirstSeen); until.After(other) {
		other = until
		if until.After(grace) && c.now.Before(until) {
			r.Note, evidence = cmp.Or(note, why.Says), append(evidence, why)
		}
	}
	if c.Interrupted {
		grace, other = r.FirstSeen, r.FirstSeen
	}
	r.Evidence, r.Due = evidence, latest(grace, other)
	r.remembered = r.Due.After(r.FirstSeen)
	if !c.now.Before(other) && !c.now.Add(jitter(terms.Grace)).Before(grace) {
		r.Verdict = Orphaned
		return r, true
	}
	r.Evidence = append(r.Evidence, Evidence{fromPolicy, c.termOf("gracePeriod", terms.Grace)})
	return r, true
}

// since returns when the allocation was first seen ownerless, which may be now. While the
// named pod exists, a different time counts than after it is gone: an allocation that only
// looked replaced was still the pod's.
func (c *Case) since() time.Time {
	return c.ledger.Since(c.Allocation, c.present(), c.now)
}

// present reports whether the pod that the allocation names exists, if that matters.
func (c *Case) present() bool {
	return c.Presence == census.Present && !c.ByRuntime
}

// jitter returns how much a grace period may be cut short. A CronJob starts a few seconds
// late, and not equally late each time. So with a run every 15 minutes, a grace period of
// 15 minutes would otherwise end one run later. Short grace periods are exact.
func jitter(grace time.Duration) time.Duration {
	if grace < 5*time.Minute {
		return 0
	}
	return min(grace/60, 15*time.Second)
}

// nodeMinAge is the age below which no allocation on a node is suspected. A runtime calls
// the network's ADD before it stores the sandbox, and the kubelet gives it twice two
// minutes for that.
const nodeMinAge = 10 * time.Minute

// minAge returns the age below which the allocation is not suspected.
func (c *Case) minAge() time.Duration {
	minAge := c.terms().MinAge
	if c.ByRuntime {
		return max(minAge, nodeMinAge)
	}
	return minAge
}
