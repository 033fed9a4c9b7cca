package rows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// Fields of the future, as a later version of the plugin with a later CRD may
// write them, come out byte for byte as they went in: numbers that no float64
// holds, characters that Go escapes, depth.
const (
	future = `"leased":9007199254740993,"weight":1.5e-7,"tags":["<&>","\u2028"],"more":{"b":{"a":[]},"é":false,"c":null}`

	fromTheFuture = `{
		"1":{"id":"a","podref":"shop/web-0","ifname":"net1",` + future + `},
		"2":{"id":"b","podref":"shop/web-1","ifname":"net1",` + future + `},
		"3":{"id":"c","podref":{"name":"web-0","namespace":"shop"}},
		"abc":{"id":"d","podref":"shop/web-0",` + future + `}}`

	allocationFromTheFuture = `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation",
		"metadata":{"name":"10.0.0.2","annotations":{"a":"<b>"},"labels":{"c":"d"},"finalizers":["example.com/hold"]},
		"spec":{"podref":"shop/web-1",` + future + `}}`
)

// Promise 6.
func TestFieldsFromTheFutureStayAsTheyAre(t *testing.T) {
	s := newScene(t)
	s.lenient("ippools", allocationSchema)
	s.lenient("overlappingrangeipreservations", specSchema)
	play(t, []scenario{{
		name: "beside an entry that goes",
		set: func(s *scene) {
			s.writePool("10.0.0.0-24", "10.0.0.0/24", fromTheFuture)
			s.write("overlappingrangeipreservations", allocationFromTheFuture)
			s.runs("web-1", "10.0.0.2")
			for name, text := range s.store().content {
				if name == "10.0.0.0-24/2" && !bytes.Contains([]byte(text), []byte("9007199254740993")) {
					s.Fatalf("the API server pruned the future: %s", text)
				}
			}
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.0-24/2 10.0.0.2 web-1 inUse PodPresent kept",
			"10.0.0.0-24/3 10.0.0.3 - held Unreadable kept",
			"10.0.0.0-24/abc - web-0 held Unreadable kept",
			"10.0.0.2 10.0.0.2 web-1 inUse PodPresent kept",
		},
	}})
}

// Entries that versions before 0.6 wrote have no podref, which the CRD of
// today wants. They were stored when it did not.
func TestEntriesFromThePastDoNotStandInTheWay(t *testing.T) {
	s := newScene(t)
	strict := s.lenient("ippools", allocationSchema)
	s.writePool("10.0.0.0-24", "10.0.0.0/24", `{"1":{"id":"a","podref":"shop/web-0","ifname":"net1"},"2":{"id":"b"},"3":{}}`)
	strict()
	before := s.store()
	got := s.reap("")
	s.wantLines([]string{
		"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
		"10.0.0.0-24/2 10.0.0.2 - held OwnerUnknown kept",
		"10.0.0.0-24/3 10.0.0.3 - held OwnerUnknown kept",
	}, got.lines)
	s.wantStore(before.without(got.lines))
}

// Where in a CRD the fields of an allocation are, and those of a spec.
const (
	specSchema       = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
	allocationSchema = specSchema + "/properties/allocations/additionalProperties"
)

// lenient has the API server take any field in a part of a resource, and a
// podref of any type or none. It is strict again when the function that it
// returns is called, or when the test ends.
func (s *scene) lenient(resource, part string) (strict func()) {
	s.Helper()
	definitions := s.cluster.Dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	name := resource + ".whereabouts.cni.cncf.io"
	before, err := definitions.Get(s.Context(), name, metav1.GetOptions{})
	s.must(err)
	spec, err := json.Marshal(before.Object["spec"])
	s.must(err)
	_, err = definitions.Patch(s.Context(), name, types.JSONPatchType, []byte(`[
		{"op":"add","path":"`+part+`/x-kubernetes-preserve-unknown-fields","value":true},
		{"op":"remove","path":"`+part+`/properties/podref"},
		{"op":"remove","path":"`+part+`/required"}]`), metav1.PatchOptions{})
	s.must(err)
	s.await("the lenient "+resource, func() bool { return s.takes(s.Context(), resource) })

	strict = func() {
		// The test's own context has ended when it cleans up.
		ctx := context.WithoutCancel(s.Context())
		_, err := definitions.Patch(ctx, name, types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec","value":`+string(spec)+`}]`), metav1.PatchOptions{})
		s.must(err)
		s.await("the strict "+resource, func() bool { return !s.takes(ctx, resource) })
	}
	s.Cleanup(strict)
	return strict
}

// takes reports whether the API server would store what no CRD of whereabouts
// allows, and keep it whole.
func (s *scene) takes(ctx context.Context, resource string) bool {
	spec := map[string]string{
		"ippools":                        `{"range":"10.0.0.0/24","allocations":{"1":{"probe":true}}}`,
		"overlappingrangeipreservations": `{"probe":true}`,
	}
	kind := map[string]string{"ippools": "IPPool", "overlappingrangeipreservations": "OverlappingRangeIPReservation"}
	kept, err := s.client().Post().Namespace(cluster.PoolNamespace).Resource(resource).Param("dryRun", "All").Param("fieldValidation", "Ignore").
		Body([]byte(`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"` + kind[resource] + `",
			"metadata":{"name":"probe"},"spec":` + spec[resource] + `}`)).Do(ctx).Raw()
	return err == nil && bytes.Contains(kept, []byte(`"probe":true`))
}

// await looks again and again until it is so.
func (s *scene) await(what string, so func() bool) {
	s.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			s.Fatalf("%s: not within 30 s", what)
		}
	}
}
