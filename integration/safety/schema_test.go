package safety_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A pool that the API server would not accept without the entry, so that it
// refuses the patch however often it comes, is reported in words after few
// tries, and does not keep other pools from being cleaned (promise 9).
func TestPoolThatItsSchemaDoesNotLetGoIsReported(t *testing.T) {
	s := newScene(t)
	s.pod(t, "live")
	end := s.wreck(t)
	stuck := poolName(network.Range)
	want := store{}
	for key, owner := range s.store(t) {
		if end[key] != "" || strings.HasSuffix(key, "10.1.0.1") {
			want[key] = owner
		}
	}
	s.forbidRemovals(t, network.Range)

	result := s.run(t, reap.ExitPartial, releaseNow+slowRule)
	s.checkStore(t, want)
	s.checkTrue(t, result.Report)
	tries := 0
	for _, r := range s.toReaper.Requests() {
		if r.String() == "patch ippools" && r.Name == stuck {
			tries++
		}
	}
	if tries > 2 {
		t.Errorf("%d patches of a pool whose schema refuses, want one or two", tries)
	}
	for _, e := range result.Report.Entries {
		if e.Backend == poolBackend && e.IP == "10.1.0.1" &&
			(e.Outcome != "failed" || !strings.Contains(e.Error, "entries are kept here")) {
			t.Errorf("outcome %s: %s; want failed, with what the schema says", e.Outcome, e.Error)
		}
	}

	s.allowRemovals(t, network.Range)
	s.converge(t, releaseNow+slowRule)
	s.checkStore(t, end)
}

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

const poolDefinition = "ippools.whereabouts.cni.cncf.io"

// forbidRemovals has the pools' definition refuse that an entry of the range
// goes, until the test ends or allowRemovals is called.
func (s *scene) forbidRemovals(t *testing.T, cidr string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := s.setRules(ctx, nil); err != nil {
			t.Error(err)
		}
	})
	rule := map[string]any{
		"rule":    "self.range != '" + cidr + "' || self.allocations.size() >= oldSelf.allocations.size()",
		"message": "entries are kept here",
	}
	if err := s.setRules(t.Context(), []any{rule}); err != nil {
		t.Fatal(err)
	}
	s.waitRemovable(t, cidr, false)
}

// allowRemovals undoes forbidRemovals.
func (s *scene) allowRemovals(t *testing.T, cidr string) {
	t.Helper()
	if err := s.setRules(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.waitRemovable(t, cidr, true)
}

// setRules replaces the validation rules of the pools' spec.
func (s *scene) setRules(ctx context.Context, rules []any) error {
	definition, err := s.Dynamic.Resource(definitions).Get(ctx, poolDefinition, metav1.GetOptions{})
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
	_, err = s.Dynamic.Resource(definitions).Update(ctx, definition, metav1.UpdateOptions{})
	return err
}

// waitRemovable waits until the API server has taken note of the definition,
// by asking it what it would say.
func (s *scene) waitRemovable(t *testing.T, cidr string, want bool) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"allocations": map[string]any{"1": nil}}})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, err := s.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Patch(t.Context(), poolName(cidr),
			types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && !apierrors.IsInvalid(err) {
			t.Fatal(err)
		}
		if removable := err == nil; removable == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("removable: %t after 30s, want %t", err == nil, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
