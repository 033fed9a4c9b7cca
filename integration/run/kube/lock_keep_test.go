package kube_test

import (
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
	log     logbook
	ticks   chan time.Time
	stopped chan struct{} // closed when renewals have ended
	release func()
}

// holdLock acquires the lock for "mine".
func (f *fixture) holdLock(client kubernetes.Interface) *heldLock {
	f.Helper()
	k := &heldLock{fixture: f, clock: newClock(), log: newLogbook(), ticks: make(chan time.Time), stopped: make(chan struct{})}
	l := state.NewLock(client.CoordinationV1(), f.namespace, k.now, slog.New(k.log))
	l.Ticks = func() (<-chan time.Time, func()) { return k.ticks, func() { close(k.stopped) } }
	k.release = f.acquire(l, "mine")
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

// wantStopped waits until renewals have ended.
func (k *heldLock) wantStopped() {
	k.Helper()
	select {
	case <-k.stopped:
	case <-time.After(patience):
		k.Fatal("the lease is still being renewed")
	}
}

// A run keeps the lock as long as it takes.
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
	k.log.wantEmpty(t)
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
	if got, want := k.log.next(t, "err"), "WARN the lock was not renewed: Operation cannot be fulfilled on leases"; !strings.HasPrefix(got, want) {
		t.Errorf("logged %s, want %s", got, want)
	}
	f.wantTerm(term{"mine", start, start, 0})
	k.pass(10 * time.Second)
	k.tick()
	k.tick() // the renewal before is over
	f.wantTerm(term{"mine", start, start.Add(20 * time.Second), 0})
	k.release()
	k.log.wantEmpty(t)
}

// A lost lease is reported, and not touched any more.
func TestLostLeaseIsLeftAlone(t *testing.T) {
	take := func(f *fixture, k *heldLock) {
		k.pass(time.Minute)
		f.acquire(f.lock(f.Kube, k.clock), "thief")
	}
	remove := func(f *fixture, _ *heldLock) {
		f.must(f.Kube.CoordinationV1().Leases(f.namespace).Delete(f.Context(), state.LockName, metav1.DeleteOptions{}))
	}
	lost := "WARN the lock was lost; this run goes on without it: "
	for _, tt := range []struct {
		name   string
		lose   func(*fixture, *heldLock)
		tick   bool
		logged string
	}{
		{"taken over, noticed at a tick", take, true, lost + "thief"},
		{"taken over, noticed at the end", take, false, lost + "thief"},
		{"deleted, noticed at a tick", remove, true, lost},
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
			if tt.logged != "" {
				if got := k.log.next(t, "holder"); got != tt.logged {
					t.Errorf("logged %s, want %s", got, tt.logged)
				}
			}
			k.log.wantEmpty(t)
			if diff := cmp.Diff(before, f.leases()); diff != "" {
				t.Errorf("leases (-before +after):\n%s", diff)
			}
			if n := len(p.Requests()); n != 1 {
				t.Errorf("%d requests, want one that notices", n)
			}
		})
	}
}

// The end of a run does not wait for a renewal that hangs.
func TestReleaseEndsARenewalThatHangs(t *testing.T) {
	f := newFixture(t)
	client, p := f.watched()
	k := f.holdLock(client)
	gate := proxy.NewGate()
	p.Before(proxy.Nth(1, proxy.On("get leases")), gate.Hook)
	k.tick()
	<-gate.Arrived()
	k.release()
	gate.Open()
	f.wantTerm(term{"", k.now(), k.now(), 0})
	k.log.wantEmpty(t)
}

func TestReleaseWhoseAnswerIsLostIsTriedAgain(t *testing.T) {
	f := newFixture(t)
	client, p := f.watched()
	k := f.holdLock(client)
	p.After(proxy.Nth(1, proxy.On("update leases")), proxy.Always(proxy.Drop()))
	k.release()
	f.wantTerm(term{"", k.now(), k.now(), 0})
	k.log.wantEmpty(t)
}

func TestReleaseThatFailsIsLogged(t *testing.T) {
	f := newFixture(t)
	client, p := f.watched()
	k := f.holdLock(client)
	p.Before(proxy.On("update leases"), proxy.Always(proxy.Forbidden()))
	k.release()
	want := "WARN the lock was not released, and is held until it expires: injected: forbidden"
	if got := k.log.next(t, "err"); got != want {
		t.Errorf("logged %s, want %s", got, want)
	}
}
