package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 1. A pod that was deleted by force still runs for its termination grace
// period. A run remembers it from when the pod was there.
func TestPodThatEndsSlowlyKeepsItsAddressForThatLong(t *testing.T) {
	for _, tt := range []struct {
		name        string
		termination time.Duration
		grace       time.Duration
		want        time.Duration // after the first run that saw it gone
		note        string
	}{
		{"the default", 30 * time.Second, 0, 0, ""},
		{"shorter than the default", time.Second, time.Minute, time.Minute, ""},
		{"a little longer", 31 * time.Second, 0, 91 * time.Second, "the pod may take 31s to end"},
		{"an hour", time.Hour, time.Minute, time.Hour + time.Minute, "the pod may take 1h0m0s to end"},
		{"an hour, and a longer grace period", time.Hour, 2 * time.Hour, 2 * time.Hour, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := backendtest.NewMemory("memory")
			h := newHarness(m.Backend())
			as := h.addPods(t, m, "live-1", "web")
			pod := podOn("n1", "web", as[1])
			pod.TerminationGrace = tt.termination
			h.pods.Add(pod)
			h.pods.AddNodes(ready("n1"))
			h.policy.GracePeriod = &policy.Duration{Duration: tt.grace}
			h.run(t)
			h.pods.Remove(pod.Ref)
			if tt.want > 0 {
				rep := h.run(t)
				equal(t, "verdict", reported(t, rep, "2"), decision{judge.Suspected, judge.PodAbsent, tt.note})
				equal(t, "due", *entryOf(t, rep, "2").Due, noon.Add(tt.want))
				h.now = noon.Add(tt.want - early(tt.grace) - time.Second)
				equal(t, "outcome a second before", outcomes(h.run(t))["2"], report.Kept)
			}
			h.now = noon.Add(tt.want)
			equal(t, "outcome", outcomes(h.run(t))["2"], report.Released)
		})
	}
}

// Promise 1. The pod of that name is another one by now. What was remembered of the
// former one counts.
func TestNewPodOfTheNameDoesNotShortenTheEndOfTheFormer(t *testing.T) {
	m := backendtest.NewMemory("memory")
	h := newHarness(m.Backend())
	as := h.addPods(t, m, "live-1", "web")
	pod := podOn("n1", "web", as[1])
	pod.TerminationGrace = time.Hour
	h.pods.Add(pod)
	h.pods.AddNodes(ready("n1"), ready("n2"))
	h.run(t)
	h.pods.Add(census.Pod{Ref: pod.Ref, UID: "new", Node: "n2"})
	equal(t, "verdict", reported(t, h.run(t), "2"), decision{judge.Suspected, judge.PodReplaced, "the pod may take 1h0m0s to end"})
}

// Promise 1. A kubelet that was cut off learns of the deletions when its node is ready
// again, and then ends the pods in their time.
func TestNodeThatIsReadyAgainGetsTimeToEndItsPods(t *testing.T) {
	back := func(name string, since time.Time) census.Node {
		return census.Node{Name: name, Ready: true, Since: since, Created: noon.Add(-24 * time.Hour)}
	}
	for _, tt := range []struct {
		name string
		node string // of the allocation
		back census.Node
		want time.Duration // after noon
	}{
		{"long ago", "n1", back("n1", noon.Add(-time.Hour)), 0},
		{"just now", "n1", back("n1", noon), 90 * time.Second},
		{"some minutes ago, by its own clock", "n1", back("n1", noon.Add(-10*time.Minute)), 90 * time.Second},
		{"soon, by its own clock", "n1", back("n1", noon.Add(time.Minute)), 150 * time.Second},
		{"in the far future, by its own clock", "n1", back("n1", noon.Add(time.Hour)), 0},
		{"another node", "n2", back("n1", noon), 0},
		{"the node is not known", "", back("n1", noon), 90 * time.Second},
		{"the node is not known, and the other is new", "", census.Node{Name: "n1", Ready: true, Since: noon, Created: noon.Add(-time.Minute)}, 0},
		{"the node does not say", "n1", ready("n1"), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Owner.Node = tt.node
			s := situation{pools: []ipam.Pool{poolOf(a)}, nodes: []census.Node{tt.back, ready("n2")}, policy: releaseNow}
			s.ledger = s.seen(t, noon)
			if tt.want > 0 {
				equal(t, "verdict a second before", s.judge(t, noon.Add(tt.want-time.Second))[0].Verdict, judge.Suspected)
			}
			equal(t, "verdict", s.judge(t, noon.Add(tt.want))[0].Verdict, judge.Orphaned)
		})
	}
}
