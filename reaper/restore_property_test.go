package reaper_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// A town is a world of one store of each kind, and a fakeStore, in which anything may
// be leaked.
type town struct {
	*world
	stores    []*backendtest.Memory
	fakeStore *fakeStore
}

// drawTown fills the stores for pods of which some do not exist, and has a run see
// it, so that nothing has to wait any more.
func drawTown(t *rapid.T) *town {
	w := &town{fakeStore: &fakeStore{}, stores: []*backendtest.Memory{
		backendtest.NewMemory("memory"), backendtest.NewTwoStep("two-step"),
		backendtest.NewForgetful("forgetful"), backendtest.NewHandled("handled"),
	}}
	w.world = newWorld()
	w.change = func(o *reaper.Options) { o.Concurrency = 1 } // so that the nth write is always the same
	w.pods.Add(reaper.Pod{Ref: other})
	for n, m := range w.stores {
		w.backends = append(w.backends, m.Backend())
		m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
		for i := range 2 * n { // so that the pools have other ranges in each store
			skipped := fmt.Sprint("skipped-", i)
			_, _ = m.Reserve(skipped, app("skipped"))
			_ = m.Free(skipped, app("skipped"))
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "addresses") {
			owner := app(fmt.Sprintf("app-%d", rapid.IntRange(0, 4).Draw(t, "pod")))
			owner.Sandbox += fmt.Sprint("-", rapid.IntRange(0, 1).Draw(t, "sandbox"))
			r, err := m.Reserve(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pool"), owner)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 3).Draw(t, "reserved") == 0 {
				w.fakeStore.add(expiring(keeping(fmt.Sprint(m.Backend().Name(), i), hours(0), r.IP)))
			}
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "handles without an address") {
		w.stores[withHandles].Begin(fmt.Sprint("lost-", i))
	}
	w.backends = append(w.backends, w.fakeStore)
	for i := range 5 {
		if rapid.Bool().Draw(t, "exists") {
			w.pods.Add(reaper.Pod{Ref: app(fmt.Sprintf("app-%d", i)).Pod})
		}
	}
	w.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	w.pass(t)
	w.now = noon.Add(time.Hour)
	return w
}

// pass is a run whose failures do not matter.
func (w *town) pass(t *rapid.T) reaper.Report {
	report, _ := reaper.Run(t.Context(), w.options())
	return report
}

// contents are what all stores hold.
func (w *town) contents(t *rapid.T) map[string]string {
	all := make(map[string]string)
	for _, m := range w.stores {
		snapshot, err := m.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for place, content := range snapshot {
			all[m.Backend().Name()+"/"+place] = content
		}
	}
	for _, key := range w.fakeStore.keys() {
		all["shelf/"+key] = "an object"
	}
	return all
}

// Promise 8, 10. Whatever is released, also by a run that was killed or whose
// stores failed: what is put back is exactly what was there; and the next run
// releases it again.
func TestRestoreIsTheInverseOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			w := drawTown(t)
			before := w.contents(t)
			breakAt := rapid.IntRange(-1, 12).Draw(t, "the write that fails")
			lost := rapid.Bool().Draw(t, "only its answer gets lost")
			writes := 0
			for _, m := range w.stores {
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
			first := w.pass(t)
			for _, m := range w.stores {
				m.OnRequest(nil)
			}
			after := w.contents(t)
			report, err := reaper.Restore(t.Context(), w.undoing())
			if err != nil {
				t.Fatalf("restore: %v", err)
			}
			if got := w.contents(t); !maps.Equal(got, before) {
				t.Fatalf("after a run that made %v of it, restored is\n%v, want\n%v", after, got, before)
			}
			if left := report.Summary; left.Restored+left.Present != left.Records || left.Restored < first.Summary.Released {
				t.Fatalf("%+v, the run had released %d", left, first.Summary.Released)
			}

			w.pass(t)
			w.now = w.now.Add(time.Hour)
			again := w.pass(t)
			if breakAt < 0 && !maps.Equal(w.contents(t), after) {
				t.Fatalf("released again, %v is left, want %v", w.contents(t), after)
			}
			if again.Summary.Failed > 0 {
				t.Fatalf("released again: %+v", again.Summary)
			}
		})
	})
}

// Promise 1, 7. Things happen between the run and its undoing: what somebody else
// has by then he keeps, and what is put back is as it was.
func TestRestoreTouchesNothingThatWasGivenToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			w := drawTown(t)
			before := w.contents(t)
			w.pass(t)
			for i := range rapid.IntRange(1, 6).Draw(t, "others") {
				m := rapid.SampledFrom(w.stores).Draw(t, "store")
				owner := app(fmt.Sprintf("new-%d", i))
				r, err := m.Reserve(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pool"), owner)
				if err != nil {
					t.Fatal(err)
				}
				if rapid.Bool().Draw(t, "shows it") {
					w.pods.Add(showing(owner.Pod, r.IP))
				}
			}
			between := w.contents(t)
			report, _ := reaper.Restore(t.Context(), w.undoing())
			got := w.contents(t)
			for place, content := range got {
				if content != between[place] && (between[place] != "" || content != before[place]) {
					t.Fatalf("%s holds %q; it had %q before the run and %q before the restore", place, content, before[place], between[place])
				}
			}
			for place := range between {
				if got[place] == "" {
					t.Fatalf("%s is gone", place)
				}
			}
			fate := make(map[string]reaper.RestoreOutcome)
			for _, e := range report.Entries {
				fate[e.Backend+"/"+backendtest.Place(reaper.Allocation{Pool: e.Pool, Key: e.Key})] = e.Outcome
			}
			for _, place := range slices.Sorted(maps.Keys(fate)) {
				if there := got[place] == before[place]; there != (fate[place] == reaper.Restored) && between[place] != before[place] {
					t.Fatalf("%s is %s, and holds %q", place, fate[place], got[place])
				}
			}
		})
	})
}
