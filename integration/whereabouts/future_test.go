package whereabouts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	reservationFromTheFuture = `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation",
		"metadata":{"name":"10.0.0.2","annotations":{"a":"<b>"},"labels":{"c":"d"},"finalizers":["example.com/hold"]},
		"spec":{"podref":"shop/web-1",` + future + `}}`
)

// Promise 6.
func TestFieldsFromTheFutureStayAsTheyAre(t *testing.T) {
	f := newFixture(t)
	f.lenient("ippools", allocationSchema)
	f.lenient("overlappingrangeipreservations", specSchema)
	play(t, []scenario{{
		name:   "beside an entry that goes",
		policy: "backends: {whereabouts: {unknownFields: ignore}}\n",
		set: func(f *fixture) {
			f.writePool("10.0.0.0-24", "10.0.0.0/24", fromTheFuture)
			f.write("overlappingrangeipreservations", reservationFromTheFuture)
			f.runs("web-1", "10.0.0.2")
			for name, text := range f.store().content {
				if name == "10.0.0.0-24/2" && !bytes.Contains([]byte(text), []byte("9007199254740993")) {
					f.Fatalf("the API server pruned the future: %s", text)
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
	f := newFixture(t)
	strict := f.lenient("ippools", allocationSchema)
	f.writePool("10.0.0.0-24", "10.0.0.0/24", `{"1":{"id":"a","podref":"shop/web-0","ifname":"net1"},"2":{"id":"b"},"3":{}}`)
	strict()
	before := f.store()
	got := f.reap("")
	f.wantLines([]string{
		"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
		"10.0.0.0-24/2 10.0.0.2 - held OwnerUnknown kept",
		"10.0.0.0-24/3 10.0.0.3 - held OwnerUnknown kept",
	}, got.lines)
	f.wantStore(before.without(got.lines))
}

// Where in a CRD the fields of an allocation are, and those of a spec.
const (
	specSchema       = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
	allocationSchema = specSchema + "/properties/allocations/additionalProperties"
)

// lenient has the API server take any field in a part of a resource, and a
// podref of any type or none. It is strict again when the function that it
// returns is called, or when the test ends.
func (f *fixture) lenient(resource, part string) (strict func()) {
	f.Helper()
	definitions := f.Dynamic.Resource(cluster.Definitions)
	name := resource + ".whereabouts.cni.cncf.io"
	before, err := definitions.Get(f.Context(), name, metav1.GetOptions{})
	f.must(err)
	spec, err := json.Marshal(before.Object["spec"])
	f.must(err)
	_, err = definitions.Patch(f.Context(), name, types.JSONPatchType, []byte(`[
		{"op":"add","path":"`+part+`/x-kubernetes-preserve-unknown-fields","value":true},
		{"op":"remove","path":"`+part+`/properties/podref"},
		{"op":"remove","path":"`+part+`/required"}]`), metav1.PatchOptions{})
	f.must(err)
	cluster.AwaitT(f, "the lenient "+resource, func() bool { return f.takes(f.Context(), resource) })

	strict = func() {
		// The test's own context has ended when it cleans up.
		ctx := context.WithoutCancel(f.Context())
		_, err := definitions.Patch(ctx, name, types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec","value":`+string(spec)+`}]`), metav1.PatchOptions{})
		f.must(err)
		cluster.AwaitT(f, "the strict "+resource, func() bool { return !f.takes(ctx, resource) })
	}
	f.Cleanup(strict)
	return strict
}

// takes reports whether the API server would store what no CRD of whereabouts
// allows, and keep it whole.
func (f *fixture) takes(ctx context.Context, resource string) bool {
	spec := map[string]string{
		"ippools":                        `{"range":"10.0.0.0/24","allocations":{"1":{"probe":true}}}`,
		"overlappingrangeipreservations": `{"probe":true}`,
	}
	kind := map[string]string{"ippools": "IPPool", "overlappingrangeipreservations": "OverlappingRangeIPReservation"}
	kept, err := f.client().Post().Namespace(cluster.PoolNamespace).Resource(resource).Param("dryRun", "All").Param("fieldValidation", "Ignore").
		Body([]byte(`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"` + kind[resource] + `",
			"metadata":{"name":"probe"},"spec":` + spec[resource] + `}`)).Do(ctx).Raw()
	return err == nil && bytes.Contains(kept, []byte(`"probe":true`))
}
