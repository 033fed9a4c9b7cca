package admission_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/admission"
)

// managedFields may change with each write, and have no limit but that of the object. An
// account that only takes away must not fill an object, so that no other client can write
// it any more.
func TestManagedFieldsDoNotFillAnObject(t *testing.T) {
	f := newFixture(t)
	var junk []string
	for i := range 12_000 {
		junk = append(junk, fmt.Sprintf(`"f:%0100d":{}`, i))
	}
	entry := `{"manager":"x","operation":"Update","apiVersion":"%s","time":"2026-11-22T07:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{` + strings.Join(junk, ",") + `}}}`
	for _, target := range []struct{ by, kind, namespace, name, version string }{
		{"pools", "pool", "kube-system", "pool", "whereabouts.cni.cncf.io/v1alpha1"},
		{"handles", "handle", "", "h1", "crd.projectcalico.org/v1"},
	} {
		body := `[{"op":"replace","path":"/metadata/managedFields","value":[` + fmt.Sprintf(entry, target.version) + `]}]`
		_, err := f.as[admission.Reaper].Resource(resources[target.kind]).Namespace(target.namespace).
			Patch(t.Context(), target.name, types.JSONPatchType, []byte(body), metav1.PatchOptions{})
		if by, err := refusedBy(err); by != target.by {
			t.Errorf("%s: refused by %q, want %q: %.300v", target.kind, by, target.by, err)
		}
		if target.kind != "pool" {
			continue
		}
		big := strings.Repeat("x", 300<<10)
		_, err = f.Dynamic.Resource(resources[target.kind]).Namespace(target.namespace).
			Patch(t.Context(), target.name, types.MergePatchType, []byte(`{"spec":{"allocations":{"7":{"id":"`+big+`","podref":"a/b"}}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Errorf("another client: %.300v", err)
		}
	}
}
