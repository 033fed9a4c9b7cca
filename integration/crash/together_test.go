package crash_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// held starts a process that is held at its first request of a kind.
func held(w *kit.World, at string, start proxy.Starter) *proxy.Held {
	w.Helper()
	w.Must(w.Memory.Unlock(w.Context()))
	h, err := proxy.Hold(w.Proxy, proxy.On(at), start)
	w.Must(err)
	return h
}

// meets has a run go on with its first request of a kind after another process has ended.
func meets(w *kit.World, at string, other func()) {
	w.Helper()
	run := held(w, at, runs(w))
	other()
	result, err := run.Finish()
	w.Must(err)
	if result.ExitCode != reap.ExitDone && result.ExitCode != reap.ExitPartial {
		w.Errorf("exit code %d\n%s", result.ExitCode, result.Stderr)
	}
	w.WantInUse()
}

// writesOfRuns are the kinds of writes at which runs meet others.
func writesOfRuns() []string {
	return some([]string{"patch ippools", "delete overlappingrangeipreservations", "update ipamblocks"}, []string{
		"patch overlappingrangeipreservations", "update ipamhandles", "delete ipamhandles",
	})
}

// Safety does not rest on the lock: two restorations at once put back what one
// would, and the report of each is true (promise 1).
func TestEveryWriteTwoRestorationsMeetAt(t *testing.T) {
	w, id := released(t)
	restores := w.Starts("restore", kit.ReleaseNow, "--run="+id)
	for _, at := range some([]string{"update ipamblocks", "patch ippools"}, []string{
		"create ipamhandles", "create overlappingrangeipreservations",
	}) {
		w.Sub(at, func() {
			w.Put(w.End)
			first := held(w, at, restores)
			w.Must(w.Memory.Unlock(w.Context()))
			second := w.RestoreReportOf(w.Ends(reap.ExitDone, restores))
			result, err := first.Finish()
			w.Must(err)
			w.WantExit(reap.ExitDone, result)
			for _, got := range []kit.RestoreReport{w.RestoreReportOf(result), second} {
				if got.Summary.Restored+got.Summary.Present != kit.Records {
					w.Errorf("%+v, want everything there", got.Summary)
				}
			}
			w.WantStores("after both", w.Before)
		})
	}
}

// Nor does it where two runs have listed the same leaks and release them, as when a CronJob replaces a
// run whose node is cut off, and that one goes on: together they come to the end of one (promises 1 and
// 8).
func TestEveryWriteTwoRunsMeetAt(t *testing.T) {
	w, _ := fixture(t)
	for _, at := range writesOfRuns() {
		w.Sub(at, func() {
			w.Again()
			meets(w, at, func() {
				w.Must(w.Memory.Unlock(w.Context()))
				w.Ends(reap.ExitDone, runs(w))
			})
			w.WantStores("after both", w.End)
			w.Converge()
		})
	}
}

// Nor does it rest on the lock where a run goes on while an earlier one is undone:
// what the run has released by then is put back, and the run goes on with what it
// finds. It touches nothing that is in use, and the next runs come to the same end
// (promises 1 and 8).
func TestEveryWriteARunAndARestorationMeetAt(t *testing.T) {
	w, id := released(t)
	for _, at := range writesOfRuns() {
		w.Sub(at, func() {
			w.Put(w.Before)
			meets(w, at, func() { w.Restore(id) })
			w.WantSingle()
			w.ConvergeTo(kit.Store.Held)
		})
	}
}

// some returns what is tried with -short, and all else without.
func some(short, rest []string) []string {
	if testing.Short() {
		return short
	}
	return append(short, rest...)
}
