package hostlocal_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Of two runs with one state, the second finds the lock taken and changes nothing. A killed run
// leaves no lock behind (promise 8).
func TestSecondRunFindsTheLock(t *testing.T) {
	w := newWorld(t)
	ips := w.leaked(pods, sandbox("web"))
	before := w.content()
	inside, goOn := make(chan struct{}), make(chan struct{})
	w.onList(secondLook, func() error {
		close(inside)
		<-goOn
		return nil
	})
	first := w.start()
	<-inside
	w.end(w.start(), reap.ExitLocked)
	w.wantContent(before)
	w.must(first.Kill())
	w.end(first, reap.ExitedByKill)
	close(goOn)
	w.wantFates(w.run(0), pods, map[string]fate{ips[0].String(): released})
}

// Two simultaneous runs that do not know about each other, because their states are in different
// folders, release what is dead and do not harm what lives (promises 1 and 8).
func TestTwoRunsWithDifferentStates(t *testing.T) {
	const dying = 300
	w := newWorld(t, span{Subnet: "10.1.0.0/16"})
	for i := range 3 {
		w.live(pods, sandbox(fmt.Sprint("live-", i)))
	}
	lives := w.content()
	w.fill(pods, dying)
	for i := range 5 { // these are released by DEL
		w.given(pods, sandbox(fmt.Sprint("gone-", i)), dead)
	}
	reports := make([]*reap.Report, 2)
	var both sync.WaitGroup
	for i := range reports {
		other := *w
		other.state = w.path(fmt.Sprint("state-", i))
		p := other.start()
		both.Go(func() {
			if result, err := p.Wait(); err != nil || result.ExitCode != 0 || result.Report == nil {
				t.Errorf("run %d: exit code %d, %v\n%s", i, result.ExitCode, err, result.Stderr)
			} else {
				reports[i] = result.Report
			}
		})
	}
	both.Wait()
	if t.Failed() {
		return
	}
	if sum := reports[0].Summary.Released + reports[1].Summary.Released; sum < dying+5 {
		t.Errorf("the runs released %d, want at least %d", sum, dying+5)
	}
	now := w.content()
	cursor := w.lease(pods, "last_reserved_ip.0")
	now[cursor] = lives[cursor]
	if len(now) != len(lives) {
		t.Errorf("%d files are left, want %d", len(now), len(lives))
	}
	for path, text := range lives {
		if now[path] != text {
			t.Errorf("%s was %s and is %s", path, text, now[path])
		}
	}
}
