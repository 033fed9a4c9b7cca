package run_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// An API server stores an allocation whose copy no ConfigMap can hold. That allocation
// stays, and the others of its pool are released (promises 9 and 10).
func TestRecordThatIsTooLargeForTheJournalStopsNoOther(t *testing.T) {
	f := newFixture(t)
	for _, pod := range []string{"web-0", "web-1", "web-2"} {
		f.leak(pod)
	}
	pools := f.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace)
	pool, err := pools.Get(t.Context(), poolName(lan.Range), metav1.GetOptions{})
	f.must(err)
	huge := strings.Repeat("x", 1200<<10)
	for key, a := range pool.Spec.Allocations {
		if a.PodRef == shop+"/web-1" {
			pool.Spec.Allocations[key] = v1alpha1.IPAllocation{ContainerID: huge, PodRef: a.PodRef, IfName: a.IfName}
		}
	}
	_, err = pools.Update(t.Context(), pool, metav1.UpdateOptions{})
	f.must(err)
	result := f.reap(reap.ExitPartial, atOnce)
	f.wantSaid(result.Report, decisions{"web-0": released, "web-1": failed, "web-2": released})
	f.wantText(result.Stderr, "is too large for the journal: ")
	left := f.owners()
	if len(left) != 1 || !slices.Contains(slices.Collect(maps.Values(left)), shop+"/web-1 "+huge) {
		t.Errorf("%d allocations are left, want that of web-1 as it was", len(left))
	}
}
