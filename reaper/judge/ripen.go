package judge

import (
	"cmp"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// ripen decides on an ownerless allocation by time. It is suspected until its grace
// period is over, for at least the given time, and until the kubelet has ended its
// sandbox. Then it is an orphan. An interrupted release does not wait.
func (f *Facts) ripen(a *ipam.Allocation, atLeast time.Duration, note string, evidence ...Evidence) (Ruling, bool) {
	terms := f.terms(a)
	if a.Created.After(f.now) { // by the clock of its node: it counts as made now
		atLeast = max(atLeast, f.minAge(a))
	}
	r := Ruling{Verdict: Suspected, Note: note, FirstSeen: f.since(a)}
	grace := r.FirstSeen.Add(terms.Grace)
	other := r.FirstSeen.Add(atLeast)
	if until, why := f.ended(a, r.FirstSeen); until.After(other) {
		other = until
		if until.After(grace) && f.now.Before(until) {
			r.Note, evidence = cmp.Or(note, why.Says), append(evidence, why)
		}
	}
	if a.Interrupted {
		grace, other = r.FirstSeen, r.FirstSeen
	}
	r.Evidence, r.Due = evidence, latest(grace, other)
	r.remembered = r.Due.After(r.FirstSeen)
	if !f.now.Before(other) && !f.now.Add(jitter(terms.Grace)).Before(grace) {
		r.Verdict = Orphaned
		return r, true
	}
	r.Evidence = append(r.Evidence, Evidence{fromPolicy, f.termOf(a, "gracePeriod", terms.Grace)})
	return r, true
}

// since returns when the allocation was first seen ownerless, which may be now. While the
// named pod exists, a different time counts than after it is gone: an allocation that only
// looked replaced was still the pod's.
func (f *Facts) since(a *ipam.Allocation) time.Time {
	return f.ledger.Since(a, f.present(a), f.now)
}

// present reports whether the pod that the allocation names exists, if that matters.
func (f *Facts) present(a *ipam.Allocation) bool {
	_, presence := f.census.Pod(a.Owner.Pod)
	return presence == census.Present && !a.ByRuntime
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
func (f *Facts) minAge(a *ipam.Allocation) time.Duration {
	minAge := f.terms(a).MinAge
	if a.ByRuntime {
		return max(minAge, nodeMinAge)
	}
	return minAge
}
