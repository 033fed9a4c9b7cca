package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A wrapped backend has its own Release.
type wrapped struct {
	ipam.Backend
	release func(ctx context.Context, ws []ipam.Warrant) []error
}

func (w wrapped) Release(ctx context.Context, ws []ipam.Warrant) []error {
	return w.release(ctx, ws)
}

// answering returns a Release that releases nothing and returns the error for each
// warrant.
func answering(err error) func(context.Context, []ipam.Warrant) []error {
	return func(_ context.Context, ws []ipam.Warrant) []error {
		return slices.Repeat([]error{err}, len(ws))
	}
}

// failing returns a hook that fails the requests that begin with one of these words.
func failing(err error, words ...string) func(request string) error {
	return func(request string) error {
		if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(request, word) }) {
			return err
		}
		return nil
	}
}

// partial runs, and returns the report and the texts of the failures. It fails the test
// unless the run returns a PartialError.
func (h *harness) partial(t *testing.T) (report.Report, []string) {
	t.Helper()
	rep, err := reaper.Run(t.Context(), h.options())
	var failed *report.PartialError
	if !errors.As(err, &failed) {
		t.Fatalf("run: %v, want a PartialError", err)
	}
	var texts []string
	for _, err := range failed.Unwrap() {
		texts = append(texts, err.Error())
	}
	return rep, texts
}

// statuses returns the statuses of the backends, by name.
func statuses(r report.Report) map[string]string {
	all := make(map[string]string)
	for _, b := range r.Backends {
		all[b.Name] = b.Status.String()
		if b.Message != "" {
			all[b.Name] += ": " + b.Message
		}
	}
	return all
}

// Promise 9, 11.
func TestBackendThatCannotBeListedStopsNoOther(t *testing.T) {
	m := backendtest.NewMemory("memory")
	broken := scriptedStore{name: "broken", steps: []step{{pool: poolOf(webAllocation())}, {err: errors.New("403 on page 2")}}}
	h := newHarness(broken, m.Backend())
	h.addPods(t, m, "live-1", "gone-1")
	rep, failures := h.partial(t)
	equal(t, "failures", failures, []string{"broken: 403 on page 2"})
	equal(t, "statuses", statuses(rep), map[string]string{"broken": "failed: 403 on page 2", "memory": "ok"})
	equal(t, "summary", rep.Summary, report.Counts{Entries: 2, InUse: 1, Planned: 1, Released: 1})
}

// Promise 7, 9.
func TestReleaseThatFailsStopsNoOther(t *testing.T) {
	one, two := backendtest.NewMemory("one"), backendtest.NewTwoStep("two")
	h := newHarness(nil, two.Backend())
	h.addPods(t, one, "live-1", "gone-1", "gone-2")
	h.addPods(t, two, "live-1", "gone-3")
	store := one.Backend()
	h.backends[0] = wrapped{store, func(ctx context.Context, ws []ipam.Warrant) []error {
		answers := store.Release(ctx, ws[1:])
		return append([]error{errors.New("the schema does not allow it")}, answers...)
	}}
	rep, failures := h.partial(t)
	equal(t, "failures", failures, []string{"one: a: 1 not released: the schema does not allow it"})
	equal(t, "statuses", statuses(rep), map[string]string{"one": "partial: failed releases: 1", "two": "ok"})
	equal(t, "outcomes", outcomes(rep), map[string]report.Fate{
		"1": report.Kept, "2": report.Failed, "3": report.Released, "10.0.0.1": report.Kept, "10.0.0.2": report.Released,
	})
	equal(t, "error", rep.Entries[1].Error, "the schema does not allow it")
	equal(t, "summary", rep.Summary, report.Counts{Entries: 5, InUse: 2, Planned: 3, Released: 2, Failed: 1})
}

// Promise 7. The address is free, and the report says that the release is not finished.
func TestUnfinishedReleaseIsReported(t *testing.T) {
	m := backendtest.NewHandled("memory")
	h := newHarness(m.Backend())
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	h.addPods(t, m, "live-1", "gone-1", "gone-2")
	m.Fumble()
	rep, failures := h.partial(t)
	const why = "released, but a later run has to remove the rest: the handle of sandbox-gone-1: the second write failed"
	equal(t, "failures", failures, []string{"memory: a: 1: " + why})
	equal(t, "statuses", statuses(rep), map[string]string{"memory": "partial: unfinished releases: 1"})
	equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"1": report.Kept, "2": report.Released, "3": report.Released})
	equal(t, "error", rep.Entries[1].Error, why)
	equal(t, "error of the other", rep.Entries[2].Error, "")
	equal(t, "summary", rep.Summary, report.Counts{Entries: 3, InUse: 1, Planned: 2, Released: 2})
	equal(t, "allocated afterwards", rep.Pools[0].AllocatedAfter, 1)

	rep = h.run(t)
	equal(t, "outcomes of the next run", outcomes(rep), map[string]report.Fate{"1": report.Kept, "sandbox-gone-1": report.Kept})
	h.now = noon.Add(4 * time.Minute)
	rep = h.run(t)
	equal(t, "outcomes of a later run", outcomes(rep), map[string]report.Fate{"1": report.Kept, "sandbox-gone-1": report.Released})
}

// Promise 11.
func TestStoreThatIsNotInstalled(t *testing.T) {
	absent := scriptedStore{name: "absent", steps: []step{{err: fmt.Errorf("%w: no CRD", ipam.ErrNotInstalled)}}}
	const message = "not installed: no CRD"
	h := newHarness(absent)
	equal(t, "statuses", statuses(h.run(t)), map[string]string{"absent": "skipped: " + message})

	h.policy.Backends["absent"] = policy.Backend{Enabled: policy.On}
	report, failures := h.partial(t)
	equal(t, "statuses of a required one", statuses(report), map[string]string{"absent": "failed: " + message})
	equal(t, "failures of a required one", failures, []string{"absent: " + message})
}

// Promise 11.
func TestDisabledBackendIsNotAskedForAnything(t *testing.T) {
	h, m := memoryHarness(t, "live-1", "gone-1")
	asked := requests(m)
	h.policy.Backends["memory"] = policy.Backend{Enabled: policy.Off}
	rep := h.run(t)
	equal(t, "statuses", statuses(rep), map[string]string{"memory": "skipped: disabled by the policy"})
	equal(t, "requests", *asked, nil)
	equal(t, "summary", rep.Summary, report.Counts{})
}

// Promise 7, 9.
func TestStoreThatDoesNotAnswerIsTriedAgainAndThenReported(t *testing.T) {
	for failures, want := range map[int]report.Fate{1: report.Released, 99: report.Failed} {
		synctest.Test(t, func(t *testing.T) {
			h, m := memoryHarness(t, "live-1", "gone-1")
			left := failures
			m.OnRequest(func(request string) error {
				if request == "list" || left == 0 {
					return nil
				}
				left--
				return errConnection
			})
			rep, err := reaper.Run(t.Context(), h.options())
			equal(t, fmt.Sprintf("outcome after %d failures", failures), outcomes(rep)["2"], want)
			if partial := (*report.PartialError)(nil); errors.As(err, &partial) != (want == report.Failed) {
				t.Errorf("after %d failures: %v", failures, err)
			}
			if want == report.Failed && !errors.Is(err, errConnection) {
				t.Errorf("after %d failures: %v, want the cause in it", failures, err)
			}
		})
	}
}

// Promise 7. The release took effect, and a waiting pod has the address before the next attempt. So
// it is not known whether this run released it, and the report does not say that it stays.
func TestLostAnswerIsInDoubtIfTheAddressHasAnotherOwnerThen(t *testing.T) {
	for _, tt := range []struct {
		name string
		next func(h *harness, m *backendtest.Memory)
	}{
		{"the store has another owner", func(_ *harness, m *backendtest.Memory) { _, _ = m.Reserve("a", app("waiting-1")) }},
		{"its owner is back", func(h *harness, _ *backendtest.Memory) { h.pods.Add(census.Pod{Ref: app("gone-1").Pod}) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, m := memoryHarness(t, "live-1", "gone-1")
				lost := false
				h.backends[0] = wrapped{m.Backend(), func(ctx context.Context, ws []ipam.Warrant) []error {
					errs := m.Backend().Release(ctx, ws)
					if lost {
						return errs
					}
					lost = true
					tt.next(h, m)
					return []error{fmt.Errorf("%w: %w", ipam.ErrAgain, ipam.ErrLost)}
				}}
				rep, failures := h.partial(t)
				e := rep.Entries[1]
				equal(t, "outcome", e.Outcome, report.Failed)
				if !strings.Contains(e.Error, "it may have been released") || len(failures) != 1 {
					t.Errorf("error %q, failures %q; want that it may have been released", e.Error, failures)
				}
				equal(t, "summary", rep.Summary, report.Counts{Entries: 2, InUse: 1, Planned: 1, Failed: 1})
				equal(t, "leaked", rep.Leaked.Total, 0)
			})
		})
	}
}
