package reaper_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// messages returns the messages of refusals, in lines.
func messages(refusals []judge.Refusal) string {
	var lines []string
	for _, refusal := range refusals {
		lines = append(lines, refusal.Message)
	}
	return strings.Join(lines, "\n")
}

// Promise 7. An operator who raises one limit must not meet the next one.
func TestEveryLimitThatRefusesIsInTheReport(t *testing.T) {
	h, m := memoryHarness(t, "gone-1", "gone-2", "gone-3")
	h.policy.Limits = policy.Limits{MaxReleases: new(1), MaxFraction: new(0.1), MinEntries: new(1), MaxPodDrop: new(0.5)}
	h.ledgers.put(t, `{"seen":{},"figures":{"pods":100}}`)
	for _, inspects := range []bool{false, true} {
		rep, err := reaper.Run(t.Context(), h.options())
		if inspects {
			rep, err = reaper.Run(t.Context(), ofFiles(h))
		}
		const plan = "the plan would release 3 of 3 allocations"
		raise := func(limit string) string {
			return "review the plan; if it is right, raise " + limit + " or give --unsafe-ignore-limit=" + strings.TrimPrefix(limit, "limits.")
		}
		want := []judge.Refusal{
			{Limit: "the cluster has no pods", Message: "the cluster has no pods: " + plan,
				Remedy: "check that the API server is the right one; if it is, give --unsafe-ignore-limit=noPods"},
			{Limit: "limits.maxReleases", Message: "limits.maxReleases: " + plan + ", more than the allowed 1", Remedy: raise("limits.maxReleases")},
			{Limit: "limits.maxFraction", Message: "limits.maxFraction: " + plan + ", more than the allowed 10 %", Remedy: raise("limits.maxFraction")},
		}
		if !inspects { // files have no ledger, and end no run
			want = append([]judge.Refusal{{
				Limit:   "limits.maxPodDrop",
				Message: "limits.maxPodDrop: the cluster has 0 unfinished pods, down from 100 in the last run, a drop of more than the allowed 50 %",
				Remedy: "check that the API server is the right one and lists everything; if it does, " +
					"run again after a grace period, raise limits.maxPodDrop or give --unsafe-ignore-limit=maxPodDrop",
			}}, want...)
			limit := limitError(t, err)
			equal(t, "refusals of the error", limit.Refusals, want)
			equal(t, "limits in the text of the error", strings.Count(limit.Error(), "; "), len(want))
		}
		equal(t, "refused", rep.Result.Refused, want)
		equal(t, "allocations", len(outcomes(rep)), 3)
		for key, outcome := range outcomes(rep) {
			equal(t, "outcome of "+key, outcome, report.Refused)
		}
		if !strings.Contains(rep.BottomLine(), "but refused") {
			t.Errorf("the bottom line reads as approved: %s", rep.BottomLine())
		}
	}
	equal(t, "allocations left", len(contentsOf(t, m)), 3)
}

// manyPods returns n pods that show no address.
func manyPods(n int) []census.Pod {
	pods := make([]census.Pod, n)
	for i := range pods {
		pods[i].Ref = ipam.PodRef{Namespace: "crowd", Name: fmt.Sprint("pod-", i)}
	}
	return pods
}

// limitError returns the error as a *LimitError, or nil.
func limitError(t *testing.T, err error) *judge.LimitError {
	t.Helper()
	var limit *judge.LimitError
	if err != nil && !errors.As(err, &limit) {
		t.Fatalf("%v, want a LimitError", err)
	}
	return limit
}

// afterDrop returns a harness whose last run found 40 more pods. 30 of them are gone by
// now, and 10.0.0.2 has lost its owner.
func afterDrop(t *testing.T) (*harness, *backendtest.Memory) {
	t.Helper()
	h, m := memoryHarness(t, "live-1", "live-2")
	h.pods.Add(manyPods(40)...)
	h.run(t)
	for _, pod := range manyPods(40)[10:] {
		h.pods.Remove(pod.Ref)
	}
	h.pods.Remove(app("live-2").Pod)
	return h, m
}

// Promise 2, 5, 9. A refused run does not save the lower figures. So the next run
// refuses too, until the pods are back.
func TestDropIsRefusedByEveryRunUntilThePodsAreBack(t *testing.T) {
	h, m := afterDrop(t)
	h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	before := contentsOf(t, m)
	const doubted = `{"seen":{},"figures":{"pods":42},"doubt":{"pods":11,"at":1772366400}}`
	for _, dryRun := range []bool{false, true, false} {
		h.policy.DryRun = &dryRun
		rep, err := reaper.Run(t.Context(), h.options())
		limit := limitError(t, err)
		if limit == nil || messages(limit.Refusals) != "limits.maxPodDrop: the cluster has 11 unfinished pods, down from 42 in the last run, a drop of more than the allowed 50 %" {
			t.Errorf("run: %v, want it refused with the figures", err)
		}
		equal(t, "store", contentsOf(t, m), before)
		equal(t, "ledger", h.ledgers.text(t), doubted)
		equal(t, "records", len(h.journal.Read().Records), 0)
		equal(t, "summary", rep.Summary, report.Counts{Entries: 2, InUse: 1, Suspected: 1})
		h.now = h.now.Add(15 * time.Minute)
	}
	h.pods.Add(manyPods(40)...)
	h.run(t)
	h.now = h.now.Add(time.Hour)
	equal(t, "released once they are back", h.run(t).Summary.Released, 1)
}

// A nightly scale-down is believed as soon as a second list confirms it, a grace period
// after the first.
func TestDropIsBelievedIfASecondListConfirmsIt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		after  time.Duration
		change func(*testing.T, *harness)
		want   bool
	}{
		{"a grace period later", time.Hour, nil, true},
		{"too early", 50 * time.Minute, nil, false},
		{"the pods dropped again", time.Hour, func(_ *testing.T, h *harness) {
			for _, pod := range manyPods(40) {
				h.pods.Remove(pod.Ref)
			}
		}, false},
		{"the pods were back in between", time.Hour, func(t *testing.T, h *harness) {
			h.pods.Add(manyPods(40)...)
			h.run(t)
			for _, pod := range manyPods(40)[10:] {
				h.pods.Remove(pod.Ref)
			}
		}, false},
		{"the pods were back in between, in a run over a limit", time.Hour, func(t *testing.T, h *harness) {
			h.pods.Add(manyPods(40)...)
			before := h.policy
			h.policy.GracePeriod = &policy.Duration{}
			h.policy.Limits.MaxFraction, h.policy.Limits.MinEntries = new(0.1), new(2)
			_, err := reaper.Run(t.Context(), h.options())
			equal(t, "over a limit", limitError(t, err) != nil, true)
			h.policy = before
			for _, pod := range manyPods(40)[10:] {
				h.pods.Remove(pod.Ref)
			}
		}, false},
		{"ten seconds later without a grace period", 10 * time.Second, func(_ *testing.T, h *harness) {
			h.policy.GracePeriod = &policy.Duration{}
		}, false},
		{"the first refused run could not write", time.Hour, func(t *testing.T, h *harness) {
			h.ledgers.put(t, `{"seen":{},"figures":{"pods":42}}`)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := afterDrop(t)
			h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
			h.policy.Limits.MinEntries = new(5)
			_, err := reaper.Run(t.Context(), h.options())
			equal(t, "refused at first", limitError(t, err) != nil, true)
			if tt.change != nil {
				tt.change(t, h)
			}
			h.now = h.now.Add(tt.after)
			_, err = reaper.Run(t.Context(), h.options())
			equal(t, "believed", err == nil, tt.want)
		})
	}
}

// Promise 2. The pods drop further before each run, each time by less than half.
func TestDropInStepsStartsTheTimeAgain(t *testing.T) {
	h, _ := afterDrop(t) // 42 to 11
	h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	h.policy.Limits.MinEntries = new(2)
	for _, left := range []int{10, 6, 4, 2, 1} {
		for _, pod := range manyPods(40)[left:] {
			h.pods.Remove(pod.Ref)
		}
		_, err := reaper.Run(t.Context(), h.options())
		equal(t, "refused", limitError(t, err) != nil, true)
		h.now = h.now.Add(15 * time.Minute)
	}
}

// A run that does not believe its list of pods remembers that a pod hangs.
func TestPodThatHangsIsRememberedInDoubt(t *testing.T) {
	leak := webAllocation()
	leak.Owner.Pod = other
	w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"}, namedStore{fixedStore{poolOf(leak)}, "whereabouts"})
	w.policy.Limits.MinEntries = new(int)
	var many []census.Pod
	for _, name := range []string{"a", "b", "c", "d"} {
		many = append(many, census.Pod{Ref: ipam.PodRef{Namespace: "shop", Name: name}})
	}
	w.cluster(many, booted("b1"))
	w.run(t)
	w.cluster([]census.Pod{hanging()}, booted("b1"))
	_, err := reaper.Run(t.Context(), w.options())
	equal(t, "limits that refuse", len(limitError(t, err).Refusals), 1)
	w.now = w.now.Add(time.Hour)
	w.cluster(many, booted("b1"))
	equal(t, "reason", w.entryIn(t, "calico").Reason, judge.TerminationStuck)
}

// Promise 2. Impossible figures make runs refuse until an operator looks.
func TestImpossibleFiguresRefuse(t *testing.T) {
	h, m := memoryHarness(t, "live-1", "gone-1", "gone-2")
	before := contentsOf(t, m)
	h.ledgers.put(t, `{"seen":{},"figures":{"pods":9223372036854775807,"nodes":9223372036854775807}}`)
	_, err := reaper.Run(t.Context(), h.options())
	equal(t, "refused", limitError(t, err) != nil, true)
	equal(t, "store", contentsOf(t, m), before)
	h.change = func(o *reaper.Options) { o.IgnoreLimits = []string{"maxPodDrop", "maxFraction"} }
	equal(t, "released after an operator looked", h.run(t).Summary.Released, 2)
}
