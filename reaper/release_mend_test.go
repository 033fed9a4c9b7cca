package reaper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// interruptedHarness returns a harness in which a run was killed during the release of
// gone-1, the second allocation.
func interruptedHarness(t *testing.T) (*harness, *backendtest.Memory) {
	t.Helper()
	m := backendtest.NewTwoStep("two-step")
	h := newHarness(m.Backend())
	h.addPods(t, m, "live-1", "gone-1")
	ctx, kill := context.WithCancel(t.Context())
	gets := 0
	h.pods.OnCall(func(call string) error {
		if strings.HasPrefix(call, "get") {
			gets++
		}
		if gets == 2 { // the second is the one after the tombstone
			kill()
		}
		return nil
	})
	if _, err := reaper.Run(ctx, h.options()); err == nil {
		t.Fatal("the run was not killed")
	}
	h.pods.OnCall(nil)
	h.pods.Calls()
	if a := listed(t, h, "a/10.0.0.2/10.0.0.2"); !a.Interrupted || a.Owner.Pod != app("gone-1").Pod {
		t.Fatalf("the killed run left %+v, want it interrupted", a)
	}
	return h, m
}

// listed returns an allocation as the first backend of the harness lists it.
func listed(t *testing.T, h *harness, place string) ipam.Allocation {
	t.Helper()
	for _, pool := range inventory(t, h.backends[0]).Listings[0].Pools {
		for _, a := range pool.Allocations {
			if backendtest.Place(a) == place {
				return a
			}
		}
	}
	t.Fatalf("%s is not listed", place)
	return ipam.Allocation{}
}

// Promise 1, 7, 8.
func TestInterruptedAllocationThatIsNoOrphanIsGivenBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*harness)
		reason judge.Reason
	}{
		{"its owner is back", func(h *harness) {
			h.pods.Add(census.Pod{Ref: app("gone-1").Pod})
		}, judge.PodPresent},
		{"another pod has the address", func(h *harness) {
			h.pods.Add(showing(other, ip2))
		}, judge.AddressInUse},
		{"a rule holds it", func(h *harness) {
			h.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"gone-*"}}, Hold: true}}
		}, judge.RuleHold},
		{"it is out of scope", func(h *harness) {
			h.policy.Namespaces.Exclude = []string{"default"}
		}, judge.OutOfScope},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m := interruptedHarness(t)
			tt.change(h)
			rep := h.run(t)
			e := rep.Entries[1]
			equal(t, "reason", e.Reason, tt.reason)
			equal(t, "outcome", e.Outcome, report.Returned)
			if !slices.ContainsFunc(rep.Brief().Entries, func(b report.Entry) bool { return b.Key == e.Key }) {
				t.Error("it was written, and the brief report does not say so")
			}
			if a := listed(t, h, "a/10.0.0.2/10.0.0.2"); a.Interrupted || a.Owner.Pod != app("gone-1").Pod {
				t.Errorf("it is listed as %+v, want it given back", a)
			}
			before := contentsOf(t, m)
			equal(t, "outcome of the next run", h.run(t).Entries[1].Outcome, report.Kept)
			equal(t, "store after the next run", contentsOf(t, m), before)
		})
	}
}

// Promise 5, 9.
func TestDryRunAndRefusedRunGiveNothingBack(t *testing.T) {
	for name, change := range map[string]func(*harness){
		"a dry run":       func(h *harness) { h.policy.DryRun = policy.Default().DryRun },
		"a failed census": func(h *harness) { h.pods.OnCall(func(string) error { return errForbidden }) },
		"a refused limit": func(h *harness) {
			h.pods.Remove(app("gone-1").Pod)
			h.pods.Remove(app("live-1").Pod)
		},
	} {
		h, m := interruptedHarness(t)
		h.pods.Add(census.Pod{Ref: app("gone-1").Pod})
		before := contentsOf(t, m)
		change(h)
		_, _ = reaper.Run(t.Context(), h.options())
		equal(t, "store after "+name, contentsOf(t, m), before)
	}
}

func TestFailureToGiveBackIsReported(t *testing.T) {
	h, m := interruptedHarness(t)
	h.pods.Add(census.Pod{Ref: app("gone-1").Pod})
	m.OnRequest(failing(errConnection, "restore"))
	rep, failures := h.partial(t)
	equal(t, "outcome", rep.Entries[1].Outcome, report.Failed)
	equal(t, "failures", len(failures), 1)
	equal(t, "summary", rep.Summary, report.Counts{Entries: 2, InUse: 2, Failed: 1})
	equal(t, "statuses", statuses(rep), map[string]string{"two-step": "partial: failed releases: 1"})
}

// Promise 7, 8. The owner comes back during the release, and the backend cannot give its
// allocation back immediately. The run does that before it ends.
func TestAllocationOfAReturnedOwnerIsWholeWhenTheRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := backendtest.NewTwoStep("two-step")
		h := newHarness(m.Backend())
		h.addPods(t, m, "live-1", "gone-1")
		before := contentsOf(t, m)
		restores := 0
		m.OnRequest(func(request string) error {
			switch {
			case strings.HasPrefix(request, "bury"):
				h.pods.Add(census.Pod{Ref: app("gone-1").Pod})
			case strings.HasPrefix(request, "restore"):
				if restores++; restores == 1 {
					return errConnection
				}
			}
			return nil
		})
		rep := h.run(t)
		equal(t, "outcome", rep.Entries[1].Outcome, report.Returned)
		equal(t, "reason", rep.Entries[1].Error, "the owner came back: now PodPresent")
		equal(t, "store", contentsOf(t, m), before)
	})
}

// Promise 6, 7, 8. The first attempt writes a tombstone, and the second one finds that the
// allocation must stay. The run takes the tombstone back before it ends.
func TestAllocationThatIsKeptAfterItsReleaseHadBegunIsWholeWhenTheRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := backendtest.NewTwoStep("two-step")
		h := newHarness(m.Backend())
		h.addPods(t, m, "live-1", "gone-1")
		before := contentsOf(t, m)
		m.OnRequest(func(request string) error {
			if strings.HasPrefix(request, "remove") {
				h.pods.Add(census.Pod{Ref: app("gone-1").Pod, Finished: true})
				return errConnection
			}
			return nil
		})
		e := h.run(t).Entries[1]
		equal(t, "outcome", e.Outcome, report.Kept)
		if !strings.Contains(e.Error, "PodFinished") {
			t.Errorf("error %q, want that the pod is finished", e.Error)
		}
		equal(t, "store", contentsOf(t, m), before)
	})
}

// An ownerlessMender is a Mender whose allocation has no owner.
type ownerlessMender struct {
	fixedStore
	mended int
}

func (s *ownerlessMender) Mend(context.Context, ipam.Allocation) error {
	s.mended++
	return errors.New("to whom?")
}

// Promise 2, 6.
func TestInterruptedAllocationThatNamesNoOwnerStaysAsItIs(t *testing.T) {
	for _, pod := range []ipam.PodRef{{}, {Name: "a/b/c"}, {Namespace: "default"}} {
		a := webAllocation()
		a.Interrupted, a.Owner.Pod = true, pod
		s := &ownerlessMender{fixedStore: fixedStore{poolOf(a)}}
		h := newHarness(s)
		e := h.run(t).Entries[0]
		equal(t, "reason", e.Reason, judge.OwnerUnknown)
		equal(t, "outcome", e.Outcome, report.Kept)
		equal(t, "times mended", s.mended, 0)
	}
}

// Promise 1. Its owner would adopt what is gone a little later.
func TestInterruptedAllocationThatIsBeingDeletedIsNotGivenBack(t *testing.T) {
	a := webAllocation()
	a.Interrupted, a.Deleting = true, "it is being deleted"
	for want, pod := range map[judge.Reason]ipam.PodRef{judge.BeingDeleted: other, judge.PodPresent: a.Owner.Pod} {
		s := &ownerlessMender{fixedStore: fixedStore{poolOf(a)}}
		h := newHarness(s)
		h.pods.Add(census.Pod{Ref: pod})
		e := h.run(t).Entries[0]
		equal(t, "reason", e.Reason, want)
		equal(t, "outcome", e.Outcome, report.Kept)
		equal(t, "times mended", s.mended, 0)
	}
}
