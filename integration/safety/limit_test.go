package safety_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A known limit, which is whereabouts' own (v0.9.4): an ADD that has found its
// allocation remembers that it need not write one, also when its write of the
// pool fails and it tries again with another address
// (skipOverlappingRangeUpdate in IPManagementKubernetesUpdate). That address
// then has no allocation, and an ADD in an overlapping range is given it too.
//
// Whoever takes away the entry or the allocation of such an ADD, between its
// reading and its writing, brings it about: the plugin's own DEL as well as a
// release. The address that gets lost is one that the ADD took by itself; none
// that was in use was released (promise 1). A test that fails here means that
// the plugin got better.
func TestKnownLimitAnAddThatTriesAgainForgetsToReserve(t *testing.T) {
	for _, tt := range []struct {
		name string

		// lower has an address free that is lower than the old one, which the
		// ADD then takes.
		lower bool

		// between is what happens between the ADD's reading and its writing.
		between func(t *testing.T, s *scene)
	}{
		{"no reaper: the DEL of the old sandbox comes in between", true, func(t *testing.T, s *scene) {
			v := s.comes(t, "web-0")
			s.toPlugin.Reset() // the DEL writes at once
			s.del(t, "web-0", oldSandbox)
			v.writes()
			s.checkForgotten(t, v)
		}},
		{"the entry is released in between", true, func(t *testing.T, s *scene) {
			var v *visitor
			s.toReaper.Before(proxy.On("patch ippools"), func(context.Context, proxy.Request) proxy.Action {
				v = s.comes(t, "web-0")
				return proxy.Pass()
			})
			s.run(t, reap.ExitDone, releaseNow)
			v.writes()
			s.checkForgotten(t, v)
		}},
		{"a tombstone stands in between, and somebody else has written the pool", false, func(t *testing.T, s *scene) {
			var v *visitor
			s.toReaper.Before(proxy.Nth(1, proxy.On("patch overlappingrangeipreservations")),
				func(context.Context, proxy.Request) proxy.Action {
					v = s.comes(t, "web-0")
					s.touch(t, network)
					return proxy.Pass()
				})
			s.toReaper.After(proxy.Nth(1, proxy.On("patch overlappingrangeipreservations")),
				func(context.Context, proxy.Request) proxy.Action {
					v.writes()
					return proxy.Pass()
				})
			s.run(t, reap.ExitDone, releaseNow)
			s.checkForgotten(t, v)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.pod(t, "bystander")
			if tt.lower {
				s.mustAdd(t, network, "first", "sandbox-first")
			}
			s.leak(t, "web-0")
			if tt.lower {
				s.del(t, "first", "sandbox-first")
			}
			tt.between(t, s)
		})
	}
}

// del runs a real DEL.
func (s *scene) del(t *testing.T, pod, sandbox string) {
	t.Helper()
	if err := s.plugin.Del(t.Context(), network, plugin.Pod{Namespace: s.namespace, Name: pod}, sandbox, "net1"); err != nil {
		t.Fatal(err)
	}
}

// touch writes the pool as somebody else would.
func (s *scene) touch(t *testing.T, n plugin.Network) {
	t.Helper()
	_, err := s.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Patch(t.Context(), poolName(n.Range),
		types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/touched":"yes"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Error(err)
	}
}

// checkForgotten fails the test unless the pod has an entry and no allocation
// for it.
func (s *scene) checkForgotten(t *testing.T, v *visitor) {
	t.Helper()
	if v.err != nil {
		t.Fatal(v.err)
	}
	st := s.store(t)
	if got, want := st[poolName(network.Range)+" "+v.ip], s.ref("web-0")+" "+newSandbox; got != want {
		t.Errorf("the pool's entry is %q, want %q", got, want)
	}
	if got := st[v.ip]; got != "" {
		t.Errorf("the reservation of %s is %q: the plugin did not forget it", v.ip, got)
	}
}
