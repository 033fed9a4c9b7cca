package run_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// A heldLock is a lock that is renewed on the test's command.
type heldLock struct {
	*fixture
	*clock
	log     bytes.Buffer
	ticks   chan time.Time
	stopped chan struct{} // closed when renewals have ended
	release func()
}

// holdLock acquires the lock for "mine", and then interrupts the run.
func (f *fixture) holdLock(client kubernetes.Interface) *heldLock {
	f.Helper()
	ctx, interrupt := context.WithCancel(f.Context())
	defer interrupt()
	k := &heldLock{fixture: f, clock: newClock(), ticks: make(chan time.Time), stopped: make(chan struct{})}
	logger := slog.New(slog.NewTextHandler(&k.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "lock" {
			return slog.Attr{}
		}
		return a
	}}))
	l := state.NewLock(client.CoordinationV1(), home, k.now, logger)
	l.Ticks = func() (<-chan time.Time, func()) { return k.ticks, func() { close(k.stopped) } }
	var err error
	k.release, err = l.Acquire(ctx, "mine")
	f.must(err)
	return k
}

// tick triggers a renewal of the lease, and returns once the previous renewal is over.
func (k *heldLock) tick() {
	k.Helper()
	select {
	case k.ticks <- k.now():
	case <-time.After(patience):
		k.Fatal("the renewal does not wait for the next tick")
	}
}

// wantLogged checks that one line was logged, without its end, or none if want is empty. No renewal
// may be under way.
func (k *heldLock) wantLogged(want string) {
	k.Helper()
	got := k.log.String()
	if !strings.HasPrefix(got, want) || strings.Count(got, "\n") != min(len(want), 1) {
		k.Errorf("logged %q, want one line %s, or none", got, want)
	}
}

// wantStopped waits until renewals have ended.
func (k *heldLock) wantStopped() {
	k.Helper()
	select {
	case <-k.stopped:
	case <-time.After(patience):
		k.Fatal("the lease is still being renewed")
	}
}

// A run keeps the lock as long as it takes, even one that was interrupted.
func TestLeaseIsRenewedUntilRelease(t *testing.T) {
	f := newFixture(t)
	k := f.holdLock(f.Kube)
	start := k.now()
	for range 6 {
		k.pass(10 * time.Second)
		k.tick()
	}
	k.tick() // the renewal before is over
	f.wantLocked(f.lock(f.Kube, k.clock), "mine", start)
	k.release()
	k.wantStopped()
	f.wantTerm(term{"", start, start.Add(time.Minute), 0})
	k.wantLogged("")
}

// A failed renewal is made up for at the next tick, and the lease lasts that long.
func TestRenewalThatFailsIsTriedAgainAtTheNextTick(t *testing.T) {
	f := newFixture(t)
	client, p := f.watched()
	k := f.holdLock(client)
	start := k.now()
	p.Reset()
	p.Before(proxy.Nth(1, proxy.On("update leases")), func(context.Context, proxy.Request) proxy.Action {
		f.editLease(func(lease *coordinationv1.Lease) { lease.Annotations = map[string]string{"by": "hand"} })
		return proxy.Pass()
	})
	k.pass(10 * time.Second)
	k.tick()
	k.pass(10 * time.Second)
	k.tick() // the renewal before is over
	k.tick()
	k.wantLogged(`level=WARN msg="the lock was not renewed" err="Operation cannot be fulfilled on leases`)
	f.wantTerm(term{"mine", start, start.Add(20 * time.Second), 0})
	k.release()
	k.wantLogged(`level=WARN`)
}

// A lost lease is reported, and not touched any more.
func TestLostLeaseIsLeftAlone(t *testing.T) {
	take := func(by string) func(f *fixture, k *heldLock) {
		return func(f *fixture, k *heldLock) {
			k.pass(time.Minute)
			f.acquire(f.lock(f.Kube, k.clock), by)
		}
	}
	remove := func(f *fixture, _ *heldLock) {
		f.must(f.Kube.CoordinationV1().Leases(home).Delete(f.Context(), state.LockName, metav1.DeleteOptions{}))
	}
	const lost = `level=WARN msg="the lock was lost; this run releases nothing more" holder=`
	for _, tt := range []struct {
		name   string
		lose   func(*fixture, *heldLock)
		tick   bool
		logged string
	}{
		{"taken over, noticed at a tick", take("thief"), true, lost + "thief\n"},
		{"taken over, noticed at the end", take("thief"), false, lost + "thief\n"},
		{"taken over by one of the same name", take("mine"), false, lost + "mine\n"},
		{"deleted, noticed at a tick", remove, true, lost + "\"\"\n"},
		{"deleted, noticed at the end", remove, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			client, p := f.watched()
			k := f.holdLock(client)
			tt.lose(f, k)
			before := f.leases()
			p.Reset()
			if tt.tick {
				k.tick()
				k.wantStopped()
			}
			k.release()
			k.release() // does nothing
			k.wantLogged(tt.logged)
			if diff := cmp.Diff(before, f.leases()); diff != "" {
				t.Errorf("leases (-before +after):\n%s", diff)
			}
			if n := len(p.Requests()); n != 1 {
				t.Errorf("%d requests, want one that notices", n)
			}
		})
	}
}

// The end of a run does not wait for a renewal that hangs, and is tried again if its answer is lost.
func TestReleaseEndsARenewalThatHangs(t *testing.T) {
	f := newFixture(t)
	client, p := f.watched()
	k := f.holdLock(client)
	gate := proxy.NewGate()
	p.Before(proxy.Nth(1, proxy.On("get leases")), gate.Hook)
	p.After(proxy.Nth(1, proxy.On("update leases")), proxy.Always(proxy.Drop()))
	k.tick()
	<-gate.Arrived()
	k.release()
	gate.Open()
	f.wantTerm(term{"", k.now(), k.now(), 0})
	k.wantLogged("")
}

func TestReleaseThatFailsIsLogged(t *testing.T) {
	f := newFixture(t)
	client, p := f.watched()
	k := f.holdLock(client)
	p.Before(proxy.On("update leases"), proxy.Always(proxy.Forbidden()))
	k.release()
	k.wantLogged(`level=WARN msg="the lock was not released, and is held until it expires" err="injected: forbidden"`)
}
