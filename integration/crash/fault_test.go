package crash_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// requests are the kinds of request that a run makes, and of those that write.
func requests(w *kit.World) (all, writes []string) {
	w.Helper()
	w.Again()
	w.Run(kit.ReleaseNow)
	all = slices.Sorted(maps.Keys(w.Proxy.Counts()))
	writes = slices.Sorted(maps.Keys(w.Proxy.Mutations()))
	w.Proxy.Reset()
	return all, writes
}

// If one of its requests goes wrong once, a run does what it is there for all the same.
// It may give up on what would not get better: then it exits with 3 and a report
// that names what failed, or, if the pods cannot be listed, with 1 and before the
// first write. The report is true, nothing in use is touched, and the next runs do
// the rest (promises 1, 2, 7, 8 and 9).
func TestEveryFaultyRequestIsTriedAgainOrReported(t *testing.T) {
	w, _ := fixture(t)
	all, writes := requests(w)
	if testing.Short() {
		all = append(writes, "list pods")
	}
	for i, request := range all {
		for j, f := range proxy.Faults {
			if testing.Short() && j != i%len(proxy.Faults) {
				continue
			}
			w.Sub(f.Name+" to "+request, func() {
				faulty(w, f.Passes, func() { f.Fail(w.Proxy, proxy.Nth(1, ofRun(request))) })
			})
		}
	}
}

// ofRun matches requests of a kind, but not for the installed policy, which a run in a pod has as a
// file.
func ofRun(request string) proxy.Match {
	match := proxy.On(request)
	return func(r proxy.Request) bool { return match(r) && r.Name != state.PolicyName }
}

// An answer may be lost, or be another one, although the write was done: the run tries it
// again, or reports it, and never does a thing twice (promises 7 and 8).
func TestEveryLostAnswerIsTriedAgainOrReported(t *testing.T) {
	w, _ := fixture(t)
	_, writes := requests(w)
	faults := proxy.Faults[3:]
	if testing.Short() {
		writes = []string{"patch ippools", "delete overlappingrangeipreservations"}
		faults = faults[1:]
	}
	// Handles of a block whose answer is lost stay for a later run: see TestReleaseWhoseAnswerIsLost.
	writes = slices.DeleteFunc(writes, func(request string) bool { return request == "update ipamblocks" })
	for _, request := range writes {
		for _, f := range faults {
			w.Sub(f.Name+" in the answer to "+request, func() {
				faulty(w, f.Passes, func() { f.Lose(w.Proxy, proxy.Nth(1, proxy.On(request))) })
			})
		}
	}
}

// faulty lets a run meet what is injected, and the next ones nothing.
func faulty(w *kit.World, passes bool, inject func()) {
	w.Helper()
	w.Again()
	inject()
	w.Must(w.Memory.Unlock(w.Context()))
	process, err := w.Starts("run", kit.ReleaseNow, "--all")()
	w.Must(err)
	result, err := process.Wait()
	w.Must(err)
	if result.Report == nil {
		w.Fatalf("no report\n%s", result.Stderr)
	}
	when := fmt.Sprintf("after exit code %d", result.ExitCode)
	view := kit.Store.Bytes
	switch {
	case passes || result.ExitCode == reap.ExitDone:
		w.WantExit(reap.ExitDone, result)
		w.WantStores(when, endOf(w, result.Report))
	case result.ExitCode == reap.ExitError:
		w.WantStores(when, w.Before)
	default:
		w.WantExit(reap.ExitPartial, result)
		wantNamed(w, result)
		view = kit.Store.Held // two runs that share a block free its addresses in another order
	}
	w.WantInUse()
	wantTrue(w, result.Report)
	w.ConvergeTo(view)
	w.WantSingle()
	wantPatient(w, result.Report)
}

// The API server goes away in the middle of a run. What was done by then is in the
// report, the rest is not, and the next run does it (promises 7 and 8).
func TestAPIServerGoesAwayDuringARun(t *testing.T) {
	w, _ := fixture(t)
	w.Again()
	var away atomic.Bool
	w.Proxy.Before(proxy.Any, func(_ context.Context, r proxy.Request) proxy.Action {
		if away.Load() || r.String() == "delete overlappingrangeipreservations" {
			away.Store(true)
			return proxy.Drop()
		}
		return proxy.Pass()
	})
	w.Must(w.Memory.Unlock(w.Context()))
	result := w.Ends(reap.ExitPartial, runs(w))
	w.WantInUse()
	wantTrue(w, result.Report)
	wantNamed(w, result)
	if result.Report.Summary.Released == 0 {
		w.Error("the report says that nothing was released; an entry of a pool was")
	}
	w.Converge()
}

// endOf is what the stores hold after a run that is done. A conflict is also what
// the API server answers if an empty handle is another one by now: a run leaves it,
// and says that it has changed.
func endOf(w *kit.World, r *reap.Report) kit.Store {
	w.Helper()
	end := maps.Clone(w.End)
	for _, e := range r.Entries {
		if e.Outcome != "changed" {
			continue
		}
		if e.IP != "" {
			w.Errorf("%s %s: %s", e.Backend, e.IP, e.Outcome)
		}
		for path, o := range w.Before {
			if _, name, _ := strings.Cut(e.Key, "/"); o.Name == name || o.Name == e.Key {
				end[path] = o
			}
		}
	}
	return end
}

// wantPatient fails the test unless the ledger knows what waits, and since when. A
// backend that a run could not list breaks the time in which its entries were seen
// ownerless: that begins anew.
func wantPatient(w *kit.World, r *reap.Report) {
	w.Helper()
	for _, b := range r.Backends {
		if b.Status == "failed" {
			w.Run(kit.ReleaseNow)
			if got := len(seen(w)); got != kit.Waits {
				w.Errorf("the ledger remembers %d entries, want %d", got, kit.Waits)
			}
			return
		}
	}
	w.WantRemembered()
}
