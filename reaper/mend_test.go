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
)

// interrupted is a world in which a run was killed in the midst of releasing
// gone-1, whose entry is the second.
func interrupted(t *testing.T) (*world, *backendtest.Memory) {
	t.Helper()
	m := backendtest.NewTwoStep("two-step")
	w := newWorld(m.Backend())
	w.fill(t, m, "live-1", "gone-1")
	ctx, kill := context.WithCancel(t.Context())
	gets := 0
	w.pods.OnCall(func(call string) error {
		if strings.HasPrefix(call, "get") {
			gets++
		}
		if gets == 2 { // the second is the one after the tombstone
			kill()
		}
		return nil
	})
	if _, err := reaper.Run(ctx, w.options()); err == nil {
		t.Fatal("the run was not killed")
	}
	w.pods.OnCall(nil)
	w.pods.Calls()
	if r := listed(t, w, "a/10.0.0.2/10.0.0.2"); !r.Interrupted || r.Owner.Pod != app("gone-1").Pod {
		t.Fatalf("the killed run left %+v, want it interrupted", r)
	}
	return w, m
}

// listed returns an entry as the world's first backend lists it.
func listed(t *testing.T, w *world, place string) reaper.Allocation {
	t.Helper()
	for _, u := range inventory(t, w.backends[0]).Listings[0].Pools {
		for _, r := range u.Allocations {
			if backendtest.Place(r) == place {
				return r
			}
		}
	}
	t.Fatalf("%s is not listed", place)
	return reaper.Allocation{}
}

// Promise 8. The grace period was over before the first run began.
func TestInterruptedReleaseIsFinishedWithoutAnotherGracePeriod(t *testing.T) {
	w, m := interrupted(t)
	w.policy.GracePeriod = policy.Default().GracePeriod
	report := w.run(t)
	equal(t, "outcomes", outcomes(report), map[string]reaper.Outcome{"10.0.0.1": reaper.Kept, "10.0.0.2": reaper.Released})
	equal(t, "entries left", len(contentsOf(t, m)), 1)
}

// Promise 1, 7, 8.
func TestInterruptedEntryThatIsNoOrphanIsGivenBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*world)
		reason reaper.Reason
	}{
		{"its owner is back", func(w *world) {
			w.pods.Add(reaper.Pod{Ref: app("gone-1").Pod})
		}, reaper.PodPresent},
		{"another pod has the address", func(w *world) {
			w.pods.Add(showing(other, ip2))
		}, reaper.AddressInUse},
		{"a rule holds it", func(w *world) {
			w.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"gone-*"}}, Hold: true}}
		}, reaper.RuleHold},
		{"it is out of scope", func(w *world) {
			w.policy.Namespaces.Exclude = []string{"default"}
		}, reaper.OutOfScope},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, m := interrupted(t)
			tt.change(w)
			report := w.run(t)
			e := report.Entries[1]
			equal(t, "reason", e.Reason, tt.reason)
			equal(t, "outcome", e.Outcome, reaper.Returned)
			if !slices.ContainsFunc(report.Brief().Entries, func(b reaper.Entry) bool { return b.Key == e.Key }) {
				t.Error("it was written, and the brief report does not say so")
			}
			if r := listed(t, w, "a/10.0.0.2/10.0.0.2"); r.Interrupted || r.Owner.Pod != app("gone-1").Pod {
				t.Errorf("it is listed as %+v, want it given back", r)
			}
			before := contentsOf(t, m)
			equal(t, "outcome of the next run", w.run(t).Entries[1].Outcome, reaper.Kept)
			equal(t, "store after the next run", contentsOf(t, m), before)
		})
	}
}

// Promise 5, 9.
func TestNothingIsGivenBackWhereNothingMayBeWritten(t *testing.T) {
	for name, change := range map[string]func(*world){
		"a dry run":       func(w *world) { w.policy.DryRun = policy.Default().DryRun },
		"a failed census": func(w *world) { w.pods.OnCall(func(string) error { return forbidden }) },
		"a refused limit": func(w *world) {
			w.pods.Remove(app("gone-1").Pod)
			w.pods.Remove(app("live-1").Pod)
		},
	} {
		w, m := interrupted(t)
		w.pods.Add(reaper.Pod{Ref: app("gone-1").Pod})
		before := contentsOf(t, m)
		change(w)
		_, _ = reaper.Run(t.Context(), w.options())
		equal(t, "store after "+name, contentsOf(t, m), before)
	}
}

func TestFailureToGiveBackIsReported(t *testing.T) {
	w, m := interrupted(t)
	w.pods.Add(reaper.Pod{Ref: app("gone-1").Pod})
	m.OnRequest(func(request string) error {
		if strings.HasPrefix(request, "restore") {
			return errConnection
		}
		return nil
	})
	report, failures := w.partial(t)
	equal(t, "outcome", report.Entries[1].Outcome, reaper.Failed)
	equal(t, "failures", len(failures), 1)
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 2, InUse: 2, Failed: 1})
	equal(t, "statuses", statuses(report), map[string]string{"two-step": "partial: failed releases: 1"})
}

// Promise 7, 8. The owner comes back in the midst of the release, and its entry
// cannot be given back at once: that is done before the run ends.
func TestEntryOfReturnedOwnerIsWholeWhenTheRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := backendtest.NewTwoStep("two-step")
		w := newWorld(m.Backend())
		w.fill(t, m, "live-1", "gone-1")
		before := contentsOf(t, m)
		restores := 0
		m.OnRequest(func(request string) error {
			switch {
			case strings.HasPrefix(request, "bury"):
				w.pods.Add(reaper.Pod{Ref: app("gone-1").Pod})
			case strings.HasPrefix(request, "restore"):
				if restores++; restores == 1 {
					return errConnection
				}
			}
			return nil
		})
		report := w.run(t)
		equal(t, "outcome", report.Entries[1].Outcome, reaper.Returned)
		equal(t, "store", contentsOf(t, m), before)
	})
}

// A silent is a Mender whose entry lost its owner.
type silent struct {
	fixedStore
	mended int
}

func (s *silent) Mend(context.Context, reaper.Allocation) error {
	s.mended++
	return errors.New("to whom?")
}

// Promise 2, 6.
func TestInterruptedEntryThatNamesNoOwnerStaysAsItIs(t *testing.T) {
	for _, pod := range []reaper.PodRef{{}, {Name: "a/b/c"}, {Namespace: "default"}} {
		r := webEntry()
		r.Interrupted, r.Owner.Pod = true, pod
		s := &silent{fixedStore: fixedStore{poolOf(r)}}
		w := newWorld(s)
		e := w.run(t).Entries[0]
		equal(t, "reason", e.Reason, reaper.OwnerUnknown)
		equal(t, "outcome", e.Outcome, reaper.Kept)
		equal(t, "times mended", s.mended, 0)
	}
}
