package undo_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// heldUp starts a process that is held up at a request, until the gate is opened.
func (w *world) heldUp(at string, start func() *reap.Process) (*reap.Process, *proxy.Gate) {
	w.Helper()
	w.unlock()
	gate := proxy.NewGate()
	w.proxy.Reset()
	w.proxy.Before(proxy.Nth(1, proxy.On(at)), gate.Hook)
	p := start()
	select {
	case <-gate.Arrived():
	case <-time.After(20 * time.Second):
		w.Fatalf("no %s", at)
	}
	return p, gate
}

// While a run goes on nothing is restored, and the other way round. Who is in the way
// is said.
func TestRunAndRestorationKeepEachOtherAway(t *testing.T) {
	w, id := released(t)
	w.restore(id)
	w.proxy.Reset()
	run, gate := w.heldUp("patch ippools", w.starts)
	stores := w.stores()
	result := w.wait(w.start("restore", releaseNow, "--run="+id), reap.ExitLocked)
	if !strings.Contains(result.Stderr, "has been running since") {
		t.Errorf("it says %s", result.Stderr)
	}
	w.wantStores("after a restoration that was kept away", stores)
	gate.Open()
	w.wait(run, reap.ExitDone)

	restoration, gate := w.heldUp("create overlappingrangeipreservations", func() *reap.Process {
		return w.start("restore", releaseNow, "--run="+id)
	})
	result = w.wait(w.starts(), reap.ExitLocked)
	if !strings.Contains(result.Stderr, "restore ") {
		t.Errorf("it says %s", result.Stderr)
	}
	gate.Open()
	w.wait(restoration, reap.ExitDone)
}

// Safety does not rest on the lock: two restorations at once put back what one would,
// and each tells the truth (promise 1).
func TestTwoRestorationsAtOnceDoNoHarm(t *testing.T) {
	w, id := released(t)
	restores := func() *reap.Process { return w.start("restore", releaseNow, "--run="+id) }
	for _, at := range []string{
		"create reservedips", "update reservedips/status", "create ipamhandles", "update ipamblocks",
		"create overlappingrangeipreservations", "patch ippools",
	} {
		t.Run(at, func(t *testing.T) {
			w.T = t
			w.put(w.end)
			first, gate := w.heldUp(at, restores)
			w.unlock()
			second := w.reportOf(w.wait(restores(), reap.ExitDone))
			gate.Open()
			r := w.reportOf(w.wait(first, reap.ExitDone))
			for _, got := range []report{r, second} {
				if got.Summary.Restored+got.Summary.Present != records {
					t.Errorf("%+v, want everything there", got.Summary)
				}
			}
			w.wantStores("after both", w.before)
		})
	}
}

// Nor does it for a run that goes on while an earlier one is undone: what the run has
// released by then is put back, and it goes on with what it finds. Nothing that is in
// use is touched, and the next runs come to the same end (promises 1 and 8).
func TestRunDuringARestorationDoesNoHarm(t *testing.T) {
	w, id := released(t)
	for _, at := range []string{
		"patch ippools", "patch overlappingrangeipreservations", "delete overlappingrangeipreservations",
		"update ipamblocks", "update ipamhandles", "delete ipamhandles", "delete reservedips",
	} {
		t.Run(at, func(t *testing.T) {
			w.T = t
			w.put(w.before)
			run, gate := w.heldUp(at, w.starts)
			w.restore(id)
			gate.Open()
			result, err := run.Wait()
			w.must(err)
			if result.ExitCode != reap.ExitDone && result.ExitCode != reap.ExitPartial {
				t.Errorf("exit code %d\n%s", result.ExitCode, result.Stderr)
			}
			w.proxy.Reset()
			w.wantInUse()
			w.wantSingle()
			w.runUntil(stores.held)
		})
	}
}

// A restoration that is told to stop, or whose time is over, does so: its report is
// true, and the next one finishes what it has left (promises 7 and 8).
func TestRestorationThatIsToldToStopReportsAndIsFinishedByTheNext(t *testing.T) {
	w, id := released(t)
	for _, at := range []string{"create reservedips", "create ipamhandles", "update ipamblocks", "create overlappingrangeipreservations", "patch ippools"} {
		t.Run("SIGTERM at "+at, func(t *testing.T) {
			w.T = t
			w.stopped(at, reap.ExitSignal, id, func(p *reap.Process) { w.must(p.Signal(syscall.SIGTERM)) })
		})
	}
	// It gets so far long before that time, also on a busy machine.
	t.Run("timeout at patch ippools", func(t *testing.T) {
		w.T = t
		w.stopped("patch ippools", reap.ExitPartial, id, func(*reap.Process) {}, "--timeout=2s")
	})
}

// stopped restores, and has that stopped at a write. The write is held back until the
// process has ended, and is then done behind its back.
func (w *world) stopped(at string, code int, id string, stop func(*reap.Process), args ...string) {
	w.Helper()
	w.put(w.end)
	written := make(chan struct{})
	p, gate := w.heldUp(at, func() *reap.Process { return w.start("restore", releaseNow, append(args, "--run="+id)...) })
	w.proxy.After(proxy.Nth(1, proxy.On(at)), func(context.Context, proxy.Request) proxy.Action {
		close(written)
		return proxy.Pass()
	})
	stop(p)
	first := w.reportOf(w.wait(p, code))
	gate.Open()
	<-written
	w.wantInUse()
	if first.Summary.Failed == 0 {
		w.Error("the report does not tell what was not begun")
	}
	then := w.restore(id).outcomes()
	for entry, outcome := range first.outcomes() {
		if outcome == "restored" && then[entry] != "present" {
			w.Errorf("the report says that %s was put back, and then it was %s", entry, then[entry])
		}
	}
	w.wantStores("after the next restoration", w.before)
}
