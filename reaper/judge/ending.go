package judge

import (
	"fmt"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// ended returns when the kubelet has surely ended the sandbox of an allocation whose pod
// is gone, and why that takes longer than usual. It returns the zero time if there is no
// reason to wait, such as if the node is fenced.
//
// A kubelet gives the containers of a pod that vanished the pod's whole termination
// grace period, even if the pod was force-deleted (kubernetes issues 115819, 120449).
// A kubelet that was cut off learns of the deletion when its node is ready again.
func (c *Case) ended(firstSeen time.Time) (until time.Time, why Evidence) {
	if !c.HoldsAddress() || c.Interrupted || c.ByRuntime || c.is(endedPod) {
		return time.Time{}, Evidence{}
	}
	grace := c.grace()
	for name := range c.nodesOf() {
		if at, because := c.endedOn(name, grace, firstSeen); at.After(until) {
			until, why = at, because
		}
	}
	return until, why
}

// endedOn is ended for a pod on this node with this grace period; 0 is the default.
func (f *Facts) endedOn(name string, grace time.Duration, firstSeen time.Time) (until time.Time, why Evidence) {
	if f.census.Fenced(name) {
		return time.Time{}, Evidence{}
	}
	if f.census.Off(name) {
		grace = min(grace, mostOfGone)
	}
	if grace > 0 {
		until = firstSeen.Add(grace + endMargin)
		why = Evidence{fromLedger, fmt.Sprintf("the pod may take %v to end", grace)}
	}
	node := f.census.ReadyAgain(name)
	if node.Since.IsZero() || f.now.Sub(node.Since).Abs() > lateNews {
		return until, why
	}
	end := max(grace, defaultTermination) + endMargin
	at := latest(firstSeen, node.Since).Add(end) // the clock of the node may be slow
	if limit := firstSeen.Add(lateNews + end); name == "" && at.After(limit) {
		at = latest(limit, node.Since.Add(defaultTermination+endMargin)) // some node or other is always ready again
	}
	if at.After(until) {
		until = at
		why = Evidence{"node " + node.Name, "it is ready since " + Stamp(node.Since) + ", and its kubelet may still end the pod"}
	}
	return until, why
}

// maxClockSkew is the most that the clocks of nodes and API servers are expected to differ, where
// a rule compares their times.
const maxClockSkew = time.Minute

// leastTolerance is how much a clock may differ from the API server's under any policy. A Date
// has whole seconds, and an answer takes time.
const leastTolerance = 5 * time.Second

// ClockTolerance returns the most that the clock of a run may differ from the API server's: a tenth
// of the shortest wait. The ledger may come from a run on another machine, whose clock may differ
// as much the other way. Then a wait is a fifth shorter than it looks.
func ClockTolerance(p policy.Policy) time.Duration {
	shortest := defaultTermination + endMargin // of the waits that no policy shortens
	waits := []*policy.Duration{p.GracePeriod, p.MinAge}
	for _, rule := range p.Rules {
		waits = append(waits, rule.GracePeriod, rule.MinAge)
	}
	for _, d := range waits {
		if d != nil && d.Duration > 0 {
			shortest = min(shortest, d.Duration)
		}
	}
	return max(shortest/10, leastTolerance)
}

const (
	// defaultTermination is the termination grace period of a pod that names none
	// (DefaultTerminationGracePeriodSeconds in k8s.io/api/core/v1).
	defaultTermination = 30 * time.Second

	// endMargin is what a kubelet gets on top of that, to notice the deletion and to end
	// the sandbox.
	endMargin = time.Minute
)

// lateNews is how long ago, or by its own clock how far ahead, a node may have become ready
// while its kubelet may still be ending pods.
const lateNews = 15 * time.Minute

// mostOfGone is the longest that an allocation waits for the pods of a node that is gone: its
// machine may still be running, and no run can know.
const mostOfGone = time.Hour

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
