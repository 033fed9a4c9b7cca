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

// Fields that a later version of the plugin with a later CRD may write come out byte for byte as
// they went in: numbers that no float64 holds, characters that Go escapes, nesting.
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
			if text := f.store().content["10.0.0.0-24/2"]; !bytes.Contains([]byte(text), []byte("9007199254740993")) {
				f.Fatalf("the API server pruned the future: %s", text)
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

// Entries from versions before 0.6 have no podref, which today's CRD requires. They were stored
// when it was not required.
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

// The paths in a CRD to the fields of a spec and of an allocation.
const (
	specSchema       = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
	allocationSchema = specSchema + "/properties/allocations/additionalProperties"
)

// lenient makes the API server accept any field in a part of a resource, and a podref of any type
// or none. The returned function makes it strict again, as does the end of the test.
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
		// The test's own context has ended by the time of cleanup.
		ctx := context.WithoutCancel(f.Context())
		_, err := definitions.Patch(ctx, name, types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec","value":`+string(spec)+`}]`), metav1.PatchOptions{})
		f.must(err)
		cluster.AwaitT(f, "the strict "+resource, func() bool { return !f.takes(ctx, resource) })
	}
	f.Cleanup(strict)
	return strict
}

// takes reports whether the API server would store what no Whereabouts CRD allows, and keep it
// whole.
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
