package safety_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// steps are where a run is told to stop, and whether it has asked by then who
// is alive.
var steps = []struct {
	name    string
	n       int64
	request string
	begun   bool
}{
	{"while pods are listed", 1, "list pods", false},
	{"at the second pool", 2, "patch ippools", true},
	{"at a tombstone", 1, "patch overlappingrangeipreservations", true},
	{"between a tombstone and the second look", 4, "get pods", true},
	{"at a delete", 1, "delete overlappingrangeipreservations", true},
}

// A run that is told to stop does so: it prints its report, which is true,
// exits as documented, and leaves nothing that the next run does not finish
// (promises 7 and 8).
func TestRunThatIsToldToStopReportsAndLeavesNothingHalfDone(t *testing.T) {
	for _, step := range steps {
		t.Run("SIGTERM "+step.name, func(t *testing.T) {
			s := newScene(t)
			s.stopped(t, proxy.Nth(step.n, proxy.On(step.request)), reap.ExitSignal, func(p *reap.Process) {
				if err := p.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			})
		})
	}
	// The run gets so far long before that time, also on a busy machine.
	const timeout = "--timeout=2s"
	for _, step := range steps[:2] {
		want := reap.ExitError
		if step.begun {
			want = reap.ExitPartial
		}
		t.Run("timeout "+step.name, func(t *testing.T) {
			newScene(t).stopped(t, proxy.Nth(step.n, proxy.On(step.request)), want, func(*reap.Process) {}, timeout)
		})
	}
}

// stopped runs on the wreck, and has the run stopped at the request that
// matches. That one is held back until the run has ended; a write is then
// done, behind the back of a run that has given up on it.
func (s *scene) stopped(t *testing.T, at proxy.Match, exit int, stop func(*reap.Process), args ...string) {
	t.Helper()
	s.pod(t, "live")
	end := s.wreck(t)
	process := make(chan *reap.Process, 1)
	over, answered := make(chan struct{}), make(chan struct{})
	var held atomic.Int64 // the number of the request
	s.toReaper.Before(at, func(_ context.Context, r proxy.Request) proxy.Action {
		held.Store(int64(r.Number))
		stop(<-process)
		select {
		case <-over:
		case <-time.After(15 * time.Second):
			t.Error("the run does not end")
		}
		if r.Mutating() {
			return proxy.Pass()
		}
		close(answered)
		return proxy.Drop()
	})
	s.toReaper.After(func(r proxy.Request) bool { return int64(r.Number) == held.Load() },
		func(context.Context, proxy.Request) proxy.Action {
			close(answered)
			return proxy.Pass()
		})
	p := s.start(t, releaseNow+slowRule, append(args, inOrder)...)
	process <- p
	result, err := p.Wait()
	close(over)
	if err != nil {
		t.Fatal(err)
	}
	if held.Load() == 0 {
		t.Fatalf("the run did not come so far\n%s", result.Stderr)
	}
	<-answered
	checkExit(t, exit, result)
	s.checkKept(t, end)
	s.checkTrue(t, result.Report)
	s.converge(t, releaseNow+slowRule)
	s.checkStore(t, end)
}
