package reaper

import (
	"fmt"
	"time"
)

const (
	// defaultTermination is the termination grace period of a pod that names none
	// (DefaultTerminationGracePeriodSeconds in k8s.io/api/core/v1).
	defaultTermination = 30 * time.Second

	// endMargin is what a kubelet gets beyond that, to notice the deletion and to end
	// the sandbox.
	endMargin = time.Minute

	// rejoinAge is how long after its creation a node that becomes ready is back, and
	// not new.
	rejoinAge = 10 * time.Minute
)

// lateNews is how far a node may be back already, or by its own clock not yet, while its
// kubelet may still be ending pods.
const lateNews = 15 * time.Minute

// ended returns when the kubelet has surely ended the sandbox of an allocation whose pod
// is gone, and why that takes longer than usual. It returns the zero time if there is no
// reason to wait: also if the node is fenced or gone.
//
// A kubelet gives the containers of a pod that vanished the whole termination grace
// period of the pod, also if the pod was deleted by force (kubernetes issues 115819,
// 120449). A kubelet that was cut off learns of the deletion when its node is ready
// again.
func (f *Facts) ended(a *Allocation, firstSeen time.Time) (until time.Time, why Evidence) {
	if !a.holdsAddress() || a.Interrupted || a.ByRuntime || f.finished(a) || f.census.off(a.Owner.Node) {
		return time.Time{}, Evidence{}
	}
	grace := f.grace(a, f.siblings(a))
	if grace > 0 {
		until = firstSeen.Add(grace + endMargin)
		why = Evidence{fromLedger, fmt.Sprintf("the pod may take %v to end", grace)}
	}
	node := f.census.readyAgain(a.Owner.Node)
	if node.Since.IsZero() || f.now.Sub(node.Since).Abs() > lateNews {
		return until, why
	}
	end := max(grace, defaultTermination) + endMargin
	at := latest(firstSeen, node.Since).Add(end) // the clock of the node may be slow
	if limit := firstSeen.Add(lateNews + end); at.After(limit) {
		at = limit // some node is ready again all the time, or has a fast clock
	}
	if at.After(until) {
		until = at
		why = Evidence{"node " + node.Name, "it is ready since " + stamp(node.Since) + ", and its kubelet may still end the pod"}
	}
	return until, why
}
