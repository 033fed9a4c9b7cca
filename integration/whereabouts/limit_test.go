package whereabouts_test

import (
	"context"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A known limit of Whereabouts itself (v0.9.4): an ADD that has found its reservation remembers
// that it need not write one, even when its write of the pool fails and it tries again with another
// address (skipOverlappingRangeUpdate in IPManagementKubernetesUpdate). That address then has no
// reservation, and an ADD in an overlapping range gets it too.
//
// It happens when the entry or the reservation of such an ADD disappears between its read and its
// write, by the plugin's own DEL as well as by a release. The address without a reservation is one
// that the ADD itself took; none that was in use was released (promise 1). If a test fails here,
// the plugin got better.
func TestKnownLimitAnAddThatTriesAgainForgetsToReserve(t *testing.T) {
	for _, tt := range []struct {
		name    string
		between func(f *fixture) // what happens between the ADD's read and its write
	}{
		{"no reaper: the DEL of the old sandbox comes in between", func(f *fixture) {
			h := f.comesBack("web-0")
			f.toPlugin.Reset() // the DEL is not held back
			f.del(network, "web-0", oldSandbox)
			h.write()
			f.wantForgotten(h)
		}},
		{"the entry is released in between", func(f *fixture) {
			var h *heldAdd
			f.toReaper.Before(proxy.On("patch ippools"), func(context.Context, proxy.Request) proxy.Action {
				h = f.comesBack("web-0")
				return proxy.Pass()
			})
			f.mustReap(reap.ExitDone, "")
			h.write()
			f.wantForgotten(h)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			_, err := f.addOne(network, "first", "sandbox-first")
			f.must(err)
			_, err = f.addOne(network, "web-0", oldSandbox)
			f.must(err)
			f.del(network, "first", "sandbox-first") // frees a lower address, which the ADD takes
			tt.between(f)
		})
	}
}

// oldSandbox is a pod's sandbox before it came back.
const oldSandbox = "sandbox-old"

// wantForgotten fails the test unless the pod has an entry and no reservation
// for it.
func (f *fixture) wantForgotten(h *heldAdd) {
	f.Helper()
	f.must(h.err)
	owners := f.owners()
	if got, want := owners[poolName(network.Range)+" "+h.ip], ref("web-0")+" "+newSandbox; got != want {
		f.Errorf("the pool's entry is %q, want %q", got, want)
	}
	if got := owners[h.ip]; got != "" {
		f.Errorf("the reservation of %s is %q: the plugin did not forget it", h.ip, got)
	}
}
