package run_test

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// lock returns the lock of the namespace home, which is never renewed.
func (f *fixture) lock(client kubernetes.Interface, c *clock) *state.Lock {
	l := state.NewLock(client.CoordinationV1(), home, c.now, slog.New(slog.DiscardHandler))
	l.Ticks = func() (<-chan time.Time, func()) { return nil, func() {} }
	return l
}

// acquire takes the lock, which must be free.
func (f *fixture) acquire(l *state.Lock, holder string) (release func()) {
	f.Helper()
	release, err := l.Acquire(f.Context(), holder)
	f.must(err)
	return release
}

// wantLocked checks that the lock is refused because of this holder.
func (f *fixture) wantLocked(l *state.Lock, by string, since time.Time) {
	f.Helper()
	_, err := l.Acquire(f.Context(), "latecomer")
	var locked *reaper.LockedError
	if !errors.As(err, &locked) {
		f.Fatalf("Acquire: %v, want a LockedError", err)
	}
	want := reaper.LockedError{Holder: by, Since: since, Lock: "lease " + home + "/ip-reaper"}
	if diff := cmp.Diff(want, *locked); diff != "" {
		f.Errorf("LockedError (-want +got):\n%s", diff)
	}
}

// storedLease returns the lease as the API server has it.
func (f *fixture) storedLease() *coordinationv1.Lease {
	f.Helper()
	lease, err := f.Kube.CoordinationV1().Leases(home).Get(f.Context(), state.LockName, metav1.GetOptions{})
	f.must(err)
	return lease
}

// leases returns all leases of the namespace home.
func (f *fixture) leases() []coordinationv1.Lease {
	f.Helper()
	list, err := f.Kube.CoordinationV1().Leases(home).List(f.Context(), metav1.ListOptions{})
	f.must(err)
	return list.Items
}

// editLease changes the lease behind the program's back. It may be called from any
// goroutine.
func (f *fixture) editLease(change func(*coordinationv1.Lease)) {
	leases := f.Kube.CoordinationV1().Leases(home)
	lease, err := leases.Get(f.Context(), state.LockName, metav1.GetOptions{})
	if err == nil {
		change(lease)
		_, err = leases.Update(f.Context(), lease, metav1.UpdateOptions{})
	}
	if err != nil {
		f.Error(err)
	}
}

// A term is a short form of a lease.
type term struct {
	Holder            string
	Acquired, Renewed time.Time
	Transitions       int32
}

// wantTerm checks the stored lease.
func (f *fixture) wantTerm(want term) {
	f.Helper()
	spec := f.storedLease().Spec
	got := term{*spec.HolderIdentity, spec.AcquireTime.UTC(), spec.RenewTime.UTC(), *spec.LeaseTransitions}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("lease (-want +got):\n%s", diff)
	}
	if *spec.LeaseDurationSeconds != 30 {
		f.Errorf("the lease lasts %d f, want 30", *spec.LeaseDurationSeconds)
	}
}

// Of many simultaneous runs, exactly one gets the lock, whether the lease does not exist yet, was
// released, or has expired; and the others learn which one.
func TestEveryRaceForTheLockHasOneWinner(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 1
	}
	for _, tt := range []struct {
		name        string
		before      func(*fixture, *clock)
		transitions int32
	}{
		{"no lease", func(*fixture, *clock) {}, 0},
		{"given back", func(f *fixture, c *clock) { f.acquire(f.lock(f.Kube, c), "earlier")() }, 1},
		{"expired", func(f *fixture, c *clock) {
			f.acquire(f.lock(f.Kube, c), "earlier")
			c.pass(30 * time.Second)
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range rounds {
				f, c := newFixture(t), newClock()
				tt.before(f, c)
				var winners, losers []string
				var mu sync.Mutex
				var wg sync.WaitGroup
				for n := range 24 {
					l, holder := f.lock(f.client(f.Config), c), fmt.Sprintf("run-%d", n)
					wg.Go(func() {
						_, err := l.Acquire(t.Context(), holder)
						mu.Lock()
						defer mu.Unlock()
						var locked *reaper.LockedError
						switch {
						case err == nil:
							winners = append(winners, holder)
						case errors.As(err, &locked):
							losers = append(losers, locked.Holder)
						default:
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if len(winners) != 1 || len(losers) != 23 {
					t.Fatalf("%d got the lock, and %d did not", len(winners), len(losers))
				}
				for _, by := range losers {
					if by != winners[0] {
						t.Errorf("a loser was told of %s, and %s has the lock", by, winners[0])
					}
				}
				f.wantTerm(term{winners[0], c.now(), c.now(), tt.transitions})
			}
		})
	}
}
