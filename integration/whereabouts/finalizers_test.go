package whereabouts_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A reservation that a finalizer keeps is not released until it is gone (promise 7). Until then, its
// tombstone stays: its owner would adopt what is gone a little later (promise 1).
func TestReservationThatAFinalizerKeepsIsNotReleased(t *testing.T) {
	const resource, finalizer = "overlappingrangeipreservations", "example.com/hold"
	f := newFixture(t)
	ip := f.leak("web-0")
	f.patch(resource, ip, types.MergePatchType, `{"metadata":{"finalizers":["`+finalizer+`"]}}`)
	journals := func() []string {
		names, err := (reap.Memory{Cluster: f.Cluster, Namespace: cluster.PoolNamespace}).Journals(t.Context())
		f.must(err)
		return names
	}

	first := f.mustReap(reap.ExitPartial, "")
	if got := first.outcomes()["overlapping "+ip]; got != "deleting" || first.report.Summary.Deleting != 1 || first.report.Summary.Released != 1 {
		t.Errorf("the reservation is %s, and the summary %+v, want it deleting and the entry released", got, first.report.Summary)
	}
	if !strings.Contains(first.stderr, finalizer) {
		t.Errorf("the error does not name the finalizer:\n%s", first.stderr)
	}
	written := journals()
	if len(written) == 0 {
		t.Fatal("no journal")
	}
	for _, back := range []bool{false, true} {
		verdict := "held BeingDeleted kept"
		if back {
			f.pod("web-0", pending)
			verdict = "inUse PodPresent kept"
		}
		next := f.mustReap(reap.ExitDone, "")
		want := ip + " " + ip + " web-0 " + verdict
		if !slices.Contains(next.lines, want) {
			t.Errorf("the next run says %q, want %s", next.lines, want)
		}
		f.wantOwners(map[string]string{ip: tombstone})
		if got := journals(); !slices.Equal(got, written) {
			t.Errorf("journals %s, want %s", got, written)
		}
	}
	f.patch(resource, ip, types.MergePatchType, `{"metadata":{"finalizers":null}}`)
	f.wantOwners(nothing)
	f.converge()
}
