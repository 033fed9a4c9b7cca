package reaper_test

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A filledHarness is a harness with one store of each kind, in which any allocation may have leaked.
type filledHarness struct {
	*harness
	stores []*backendtest.Memory
}

// drawFilledHarness fills the stores for pods, some of which do not exist. A first run
// has seen them, so that nothing needs to wait any more.
func drawFilledHarness(t *rapid.T) *filledHarness {
	h := &filledHarness{stores: []*backendtest.Memory{
		backendtest.NewMemory("memory"), backendtest.NewTwoStep("two-step"),
		backendtest.NewForgetful("forgetful"), backendtest.NewHandled("handled"),
	}}
	h.harness = newHarness()
	h.pods.Add(census.Pod{Ref: other})
	for n, m := range h.stores {
		h.backends = append(h.backends, m.Backend())
		m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
		for i := range 2 * n { // so that the pools have other ranges in each store
			skipped := fmt.Sprint("skipped-", i)
			_, _ = m.Reserve(skipped, app("skipped"))
			_ = m.Free(skipped, app("skipped"))
		}
		for range rapid.IntRange(0, 6).Draw(t, "addresses") {
			owner := app(fmt.Sprintf("app-%d", rapid.IntRange(0, 4).Draw(t, "pod")))
			owner.Sandbox += fmt.Sprint("-", rapid.IntRange(0, 1).Draw(t, "sandbox"))
			if _, err := m.Reserve(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pool"), owner); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "handles without an address") {
		h.stores[withHandles].Begin(fmt.Sprint("lost-", i))
	}
	for i := range 5 {
		if rapid.Bool().Draw(t, "exists") {
			h.pods.Add(census.Pod{Ref: app(fmt.Sprintf("app-%d", i)).Pod})
		}
	}
	h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	h.runAnyway(t)
	h.now = noon.Add(time.Hour)
	return h
}

// runAnyway runs and ignores failures.
func (h *filledHarness) runAnyway(t *rapid.T) report.Report {
	report, _ := reaper.Run(t.Context(), h.options())
	return report
}

// contents returns the contents of all stores.
func (h *filledHarness) contents(t *rapid.T) map[string]string {
	all := make(map[string]string)
	for _, m := range h.stores {
		snapshot, err := m.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for place, content := range snapshot {
			all[m.Backend().Name()+"/"+place] = content
		}
	}
	return all
}

// Promise 8, 10. A run releases, and may be killed or meet failing stores. Restore puts
// back exactly what was there, and the next run releases it again.
func TestRestoreIsTheInverseOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			h := drawFilledHarness(t)
			before := h.contents(t)
			breakAt := rapid.IntRange(-1, 12).Draw(t, "the write that fails")
			lost := rapid.Bool().Draw(t, "only its answer gets lost")
			writes := 0
			for _, m := range h.stores {
				m.OnRequest(func(request string) error {
					if request == "list" || request == "record" {
						return nil
					}
					writes++
					switch {
					case breakAt < 0 || writes < breakAt:
						return nil
					case lost:
						return backendtest.ErrLost
					}
					return errConnection
				})
			}
			first := h.runAnyway(t)
			for _, m := range h.stores {
				m.OnRequest(nil)
			}
			after := h.contents(t)
			report, err := reaper.Restore(t.Context(), h.restoreOptions())
			if err != nil {
				t.Fatalf("restore: %v", err)
			}
			if got := h.contents(t); !maps.Equal(got, before) {
				t.Fatalf("after a run that made %v of it, restored is\n%v, want\n%v", after, got, before)
			}
			if left := report.Summary; left.Restored+left.Present != left.Records || left.Restored < first.Summary.Released {
				t.Fatalf("%+v, the run had released %d", left, first.Summary.Released)
			}

			h.runAnyway(t)
			h.now = h.now.Add(time.Hour)
			again := h.runAnyway(t)
			if breakAt < 0 && !maps.Equal(h.contents(t), after) {
				t.Fatalf("released again, %v is left, want %v", h.contents(t), after)
			}
			if again.Summary.Failed > 0 {
				t.Fatalf("released again: %+v", again.Summary)
			}
		})
	})
}
