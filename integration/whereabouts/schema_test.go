package whereabouts_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A pool that the API server would not accept without the entry, so that it
// refuses the patch however often it comes, is reported in words after few
// tries, and does not keep other pools from being cleaned (promise 9).
func TestPoolThatItsSchemaDoesNotLetGoIsReported(t *testing.T) {
	f := newFixture(t)
	f.runs("live", "10.1.0.2")
	f.fill(network.Range, map[int]string{1: "web-0", 2: "live"})
	f.fill("10.2.0.0/24", map[int]string{1: "gone"})
	before := f.store()
	f.forbidRemovals(network.Range)

	live := both("10.1.0.0-24/2", "10.1.0.2", "10.1.0.2 live inUse PodPresent kept")
	got := f.mustReap(reap.ExitPartial, "")
	f.wantLines(append(append(live,
		"10.1.0.0-24/1 10.1.0.1 web-0 orphan PodAbsent failed", "10.1.0.1 10.1.0.1 web-0 orphan PodAbsent kept"),
		both("10.2.0.0-24/1", "10.2.0.1", "10.2.0.1 gone orphan PodAbsent released")...), got.lines)
	f.wantStore(before.without(got.lines))
	tries := 0
	for _, r := range f.toReaper.Requests() {
		if r.String() == "patch ippools" && r.Name == poolName(network.Range) {
			tries++
		}
	}
	if tries < 1 || tries > 2 {
		t.Errorf("%d patches of a pool whose schema refuses, want one or two", tries)
	}
	for _, e := range got.report.Entries {
		if e.Outcome == "failed" && !strings.Contains(e.Error, "entries are kept here") {
			t.Errorf("error %q, want what the schema says", e.Error)
		}
	}

	f.allowRemovals(network.Range)
	got = f.mustReap(reap.ExitDone, "")
	f.wantLines(append(live, both("10.1.0.0-24/1", "10.1.0.1", "10.1.0.1 web-0 orphan PodAbsent released")...), got.lines)
	f.wantOwners(map[string]string{"10.1.0.0-24 10.1.0.2": ref("live") + " sandbox-live", "10.1.0.2": ref("live")})
}

// forbidRemovals has the pools' definition refuse that an entry of the range
// goes, until the test ends or allowRemovals is called.
func (f *fixture) forbidRemovals(cidr string) {
	f.Helper()
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(f.Context()), 30*time.Second)
		defer cancel()
		if err := f.setRules(ctx, nil); err != nil {
			f.Error(err)
		}
	})
	f.must(f.setRules(f.Context(), []any{map[string]any{
		"rule":    "self.range != '" + cidr + "' || self.allocations.size() >= oldSelf.allocations.size()",
		"message": "entries are kept here",
	}}))
	f.awaitRemovable(cidr, false)
}

// allowRemovals undoes forbidRemovals.
func (f *fixture) allowRemovals(cidr string) {
	f.Helper()
	f.must(f.setRules(f.Context(), nil))
	f.awaitRemovable(cidr, true)
}

// setRules replaces the validation rules of the pools' spec.
func (f *fixture) setRules(ctx context.Context, rules []any) error {
	definitions := f.Dynamic.Resource(cluster.Definitions)
	definition, err := definitions.Get(ctx, "ippools.whereabouts.cni.cncf.io", metav1.GetOptions{})
	if err != nil {
		return err
	}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return err
	}
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "x-kubernetes-validations"}
	version := versions[0].(map[string]any)
	if rules == nil {
		unstructured.RemoveNestedField(version, path...)
	} else if err := unstructured.SetNestedSlice(version, rules, path...); err != nil {
		return err
	}
	if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
		return err
	}
	_, err = definitions.Update(ctx, definition, metav1.UpdateOptions{})
	return err
}

// awaitRemovable waits until the API server has taken note of the definition,
// by asking it what it would say.
func (f *fixture) awaitRemovable(cidr string, want bool) {
	f.Helper()
	pools := f.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace)
	cluster.AwaitT(f, "the new definition of pools", func() bool {
		_, err := pools.Patch(f.Context(), poolName(cidr), types.MergePatchType,
			[]byte(`{"spec":{"allocations":{"1":null}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && !apierrors.IsInvalid(err) {
			f.Fatal(err)
		}
		return want == (err == nil)
	})
}
