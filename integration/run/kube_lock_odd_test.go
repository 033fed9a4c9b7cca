package run_test

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// A change between the look at the lease and the write decides who has the lock: no holder is
// overwritten, and no run is locked out by its own write whose answer was lost.
func TestLeaseThatChangesWhileItIsTaken(t *testing.T) {
	other := func(f *fixture, c *clock) { f.acquire(f.lock(f.Kube, c), "other") }
	annotate := func(f *fixture, _ *clock) {
		f.editLease(func(lease *coordinationv1.Lease) { lease.Annotations = map[string]string{"by": "hand"} })
	}
	remove := func(f *fixture, _ *clock) {
		f.must(f.Kube.CoordinationV1().Leases(home).Delete(context.WithoutCancel(f.Context()), state.LockName, metav1.DeleteOptions{}))
	}
	for _, tt := range []struct {
		name        string
		there       bool // there is an expired lease
		between     func(*fixture, *clock)
		lost        bool // the first answer is lost
		holder      string
		transitions int32
	}{
		{"another creates it", false, other, false, "other", 0},
		{"another takes it over", true, other, false, "other", 1},
		{"it is annotated", true, annotate, false, "mine", 1},
		{"it is deleted", true, remove, false, "mine", 0},
		{"created, and the answer is lost", false, nil, true, "mine", 0},
		{"taken over, and the answer is lost", true, nil, true, "mine", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, c := newFixture(t), newClock()
			if tt.there {
				f.acquire(f.lock(f.Kube, c), "killed")
				c.pass(time.Hour)
			}
			client, p := f.watched()
			first := proxy.Nth(1, proxy.Mutating)
			if tt.lost {
				p.After(first, proxy.Always(proxy.Drop()))
			} else {
				p.Before(first, func(context.Context, proxy.Request) proxy.Action {
					tt.between(f, c)
					return proxy.Pass()
				})
			}
			if tt.holder == "mine" {
				f.acquire(f.lock(client, c), "mine")
			} else {
				f.wantLocked(f.lock(client, c), tt.holder, c.now())
			}
			f.wantTerm(term{tt.holder, c.now(), c.now(), tt.transitions})
		})
	}
}
