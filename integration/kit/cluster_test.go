package kit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

func TestVersionsTellAWriteFromNone(t *testing.T) {
	c := cluster.StartT(t)
	namespace := c.Namespace(t)
	versions := func() map[string]string {
		t.Helper()
		v, err := c.Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if _, err := c.CreatePod(t.Context(), namespace, "web-0"); err != nil {
		t.Fatal(err)
	}
	before := versions()
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("nothing was written, versions (-before +after):\n%s", diff)
	}
	if err := c.UpdatePod(t.Context(), namespace, "web-0", cluster.Networks()); err != nil {
		t.Fatal(err)
	}
	after := versions()
	key := "pods/" + namespace + "/web-0"
	if before[key] == "" || before[key] == after[key] {
		t.Errorf("version of %s was %q and is %q after a write", key, before[key], after[key])
	}
}
