package safety_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// An errand is work that needs every right that a run with one backend can need. It
// is done in two runs: the first creates the ledger and a journal, and the second
// updates the one and has the other to delete.
type errand struct {
	backend string
	begin   func(t *testing.T, a *account) // before the first run
	more    func(t *testing.T, a *account) // before the second
	end     func(a *account) store
}

// errands are one for each backend.
var errands = []errand{
	{
		// A pool changes under the patch.
		backend: poolBackend,
		begin: func(t *testing.T, a *account) {
			t.Helper()
			a.put(t, network.Range, map[int]string{1: "gone-1", 2: "live", 3: "gone-3"})
			a.put(t, "10.2.0.0/24", map[int]string{1: "slow-1"})
			a.toReaper.Before(proxy.Nth(1, proxy.On("patch ippools")), func(context.Context, proxy.Request) proxy.Action {
				a.adopt(t, network.Range, "3", "sandbox-3")
				return proxy.Pass()
			})
		},
		more: func(t *testing.T, a *account) {
			t.Helper()
			a.put(t, "10.4.0.0/24", map[int]string{1: "slow-2", 2: "gone-6"})
		},
		end: func(a *account) store {
			return store{
				"10.1.0.0-24 10.1.0.2": a.ref("live") + " sandbox-live",
				"10.2.0.0-24 10.2.0.1": a.ref("slow-1") + " sandbox-slow-1",
				"10.4.0.0-24 10.4.0.1": a.ref("slow-2") + " sandbox-slow-2",
				"10.1.0.1":             a.ref("gone-1"), "10.1.0.2": a.ref("live"), "10.1.0.3": a.ref("gone-3"),
				"10.2.0.1": a.ref("slow-1"), "10.4.0.1": a.ref("slow-2"), "10.4.0.2": a.ref("gone-6"),
			}
		},
	},
	{
		// A tombstone was left.
		backend: allocationBackend,
		begin: func(t *testing.T, a *account) {
			t.Helper()
			for ip, pod := range map[string]string{"10.3.0.1": "gone-1", "10.3.0.2": "live", "10.3.0.3": "gone-3", "10.3.0.4": "slow-1"} {
				a.reserve(t, ip, a.ref(pod))
			}
			a.setOwner(t, "10.3.0.1", tombstone, a.ref("gone-1"))
		},
		more: func(t *testing.T, a *account) {
			t.Helper()
			a.reserve(t, "10.3.0.5", a.ref("gone-5"))
			a.reserve(t, "10.3.0.6", a.ref("slow-2"))
		},
		end: func(a *account) store {
			return store{"10.3.0.2": a.ref("live"), "10.3.0.4": a.ref("slow-1"), "10.3.0.6": a.ref("slow-2")}
		},
	},
}

// run does the errand, and returns what went wrong, or nothing. What only disturbs
// is in the warnings.
func (e errand) run(t *testing.T, a *account) (wrong string) {
	t.Helper()
	a.wipe(t)
	a.unlock(t)
	e.begin(t, a)
	for n := range 2 {
		result, err := a.launch(t, releaseNow+slowRule+"journal: {keep: 1}\n"+only(e.backend)).Wait()
		if err != nil {
			t.Fatal(err)
		}
		if result.ExitCode != reap.ExitDone || len(result.Report.Warnings) > 0 {
			return fmt.Sprintf("run %d exits with %d and warns of %v", n+1, result.ExitCode, result.Report.Warnings)
		}
		if n == 0 {
			e.more(t, a)
		}
	}
	return cmp.Diff(e.end(a), a.store(t))
}

// only is the part of a policy that has no other backend look.
func only(backend string) string {
	text := "backends:\n"
	for _, other := range []string{poolBackend, allocationBackend, blockBackend} {
		if other != backend {
			text += "  " + other + ": {enabled: false}\n"
		}
	}
	return text
}

// adopt changes the entry's sandbox, as a pod that comes back does.
func (s *scene) adopt(t *testing.T, cidr, key, sandbox string) {
	t.Helper()
	_, err := s.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Patch(t.Context(), poolName(cidr),
		types.MergePatchType, []byte(`{"spec":{"allocations":{"`+key+`":{"id":"`+sandbox+`"}}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Error(err)
	}
}

// setOwner changes what a allocation says of its owner, now and before.
func (s *scene) setOwner(t *testing.T, ip, ref, before string) {
	t.Helper()
	_, err := s.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace).Patch(t.Context(),
		ip, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"ip-reaper/owner":"`+before+`"}},"spec":{"podref":"`+ref+`"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
