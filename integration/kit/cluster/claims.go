package cluster

import (
	"bytes"
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// IPAMClaims is the resource that DefineClaimsT defines.
var IPAMClaims = schema.GroupVersionResource{Group: "k8s.cni.cncf.io", Version: "v1alpha1", Resource: "ipamclaims"}

// DefineClaimsT defines IPAMClaims until the test ends, which deletes them all.
func (c *Cluster) DefineClaimsT(t testing.TB) {
	t.Helper()
	path, err := definition("ipam-claims.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.DefineT(t, path)
}

// CreateClaim creates an IPAMClaim.
func (c *Cluster) CreateClaim(ctx context.Context, namespace, name string) error {
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": IPAMClaims.GroupVersion().String(),
		"kind":       "IPAMClaim",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"network": "lan", "interface": "net1"},
	}}
	_, err := c.Dynamic.Resource(IPAMClaims).Namespace(namespace).Create(ctx, claim, metav1.CreateOptions{})
	return err
}

// A claimable is a resource of Whereabouts that may name a claim in a later version.
type claimable struct {
	resource string
	field    string // where the field is in its definition
	probe    string // an object with the field
}

var claimables = []claimable{
	{
		"ippools",
		"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/allocations/additionalProperties/properties/ipamclaimref",
		`{"kind":"IPPool","spec":{"range":"10.0.0.0/24","allocations":{"1":{"id":"c","podref":"a/b","ipamclaimref":"a/vm"}}},`,
	},
	{
		"overlappingrangeipreservations",
		"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/ipamclaimref",
		`{"kind":"OverlappingRangeIPReservation","spec":{"podref":"a/b","ipamclaimref":"a/vm"},`,
	},
}

// KeepClaimsT adds ipamclaimref to the definitions of Whereabouts until the test ends,
// as a later version of them has it. Those of today prune the field.
func (c *Cluster) KeepClaimsT(t testing.TB) {
	t.Helper()
	for _, r := range claimables {
		if c.keeps(t.Context(), r) {
			t.Errorf("%s have ipamclaimref in their own definition: KeepClaimsT may go", r.resource)
		}
		patch := func(ctx context.Context, operation string) error {
			_, err := c.Dynamic.Resource(Definitions).Patch(ctx, r.resource+".whereabouts.cni.cncf.io", types.JSONPatchType,
				[]byte("["+operation+"]"), metav1.PatchOptions{})
			return err
		}
		if err := patch(t.Context(), `{"op":"add","path":"`+r.field+`","value":{"type":"string"}}`); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// The test's own context has ended by now.
			ctx := context.WithoutCancel(t.Context())
			if err := patch(ctx, `{"op":"remove","path":"`+r.field+`"}`); err != nil {
				t.Error(err)
				return
			}
			AwaitT(t, r.resource+" without claims", func() bool { return !c.keeps(ctx, r) })
		})
		AwaitT(t, r.resource+" with claims", func() bool { return c.keeps(t.Context(), r) })
	}
}

// keeps reports whether the API server would store the claim of an object.
func (c *Cluster) keeps(ctx context.Context, r claimable) bool {
	stored, err := c.Whereabouts.WhereaboutsV1alpha1().RESTClient().Post().Namespace(PoolNamespace).Resource(r.resource).
		Param("dryRun", "All").Param("fieldValidation", "Ignore").
		Body([]byte(r.probe + `"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","metadata":{"name":"probe"}}`)).Do(ctx).Raw()
	return err == nil && bytes.Contains(stored, []byte(`"ipamclaimref":"a/vm"`))
}
