package admission_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/admission"
)

// The accounts that release may take allocations out of a pool, and nothing else; the
// account that restores may put some in.
func TestPoolsOnlyShrinkOrAreRestored(t *testing.T) {
	f := newFixture(t)
	const pool, spec = "pool: kube-system/pool", "/spec/allocations/"
	add := `[{"op":"add","path":"` + spec + `9","value":{"id":"c9","podref":"shop/nine","ifname":"net1"}}]`
	remove := `[{"op":"remove","path":"` + spec + `1"}]`
	never := []write{
		{"change an owner", "pools", "patch", pool, `[{"op":"replace","path":"` + spec + `1/podref","value":"evil/pod"}]`},
		{"change a sandbox", "pools", "patch", pool, `[{"op":"replace","path":"` + spec + `1/id","value":"evil"}]`},
		{"change an interface", "pools", "patch", pool, `[{"op":"remove","path":"` + spec + `1/ifname"}]`},
		{"move an allocation", "pools", "patch", pool, `[{"op":"move","from":"` + spec + `1","path":"` + spec + `7"}]`},
		{"exchange two allocations", "pools", "patch", pool,
			`[{"op":"move","from":"` + spec + `1","path":"` + spec + `7"},{"op":"move","from":"` + spec + `2","path":"` + spec + `1"},{"op":"move","from":"` + spec + `7","path":"` + spec + `2"}]`},
		{"spoil the range", "pools", "patch", pool, `[{"op":"replace","path":"/spec/range","value":"10.0.0.0/32"}]`},
		{"add a label", "pools", "patch", pool, `[{"op":"add","path":"/metadata/labels/x","value":"y"}]`},
		{"change a label", "pools", "patch", pool, `[{"op":"replace","path":"/metadata/labels/a","value":"y"}]`},
		{"remove the labels", "pools", "patch", pool, `[{"op":"remove","path":"/metadata/labels"}]`},
		{"add an annotation", "pools", "patch", pool, `[{"op":"add","path":"/metadata/annotations","value":{"x":"y"}}]`},
		{"add a finalizer", "pools", "patch", pool, `[{"op":"add","path":"/metadata/finalizers","value":["example.com/x"]}]`},
		{"add an owner", "pools", "patch", pool,
			`[{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"1"}]}]`},
		{"remove one and add another", "pools", "patch", pool, remove[:len(remove)-1] + "," + add[1:]},
		{"delete a pool", "other", "delete", pool, ``},
		{"delete all pools", "other", "collect", "pool: kube-system/", ``},
		{"create a pool", "other", "create", "pool: ",
			`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool","metadata":{"namespace":"kube-system","name":"new"},"spec":{"range":"10.3.0.0/24","allocations":{}}}`},
	}
	release := append([]write{
		{"remove an allocation", "", "patch", pool, remove},
		{"remove all", "", "patch", pool, `[{"op":"remove","path":"` + spec + `1"},{"op":"remove","path":"` + spec + `2"}]`},
		{"change nothing", "", "patch", pool, `[]`},
		{"add an allocation", "pools", "patch", pool, add},
		{"add one to an empty pool", "pools", "patch", "pool: kube-system/other", add},
	}, never...)
	f.releasing(release...)
	f.each(admission.Restore, append([]write{
		{"add an allocation", "", "patch", pool, add},
		{"add one to an empty pool", "", "patch", "pool: kube-system/other", add},
		{"remove an allocation", "restore-pools", "patch", pool, remove},
	}, restoring(never)...))
}

// restoring are the writes as the policies of the account that restores refuse them. One policy is
// for all accounts.
func restoring(writes []write) []write {
	var all []write
	for _, w := range writes {
		switch w.by {
		case "", "other":
		default:
			w.by = "restore-" + w.by
		}
		all = append(all, w)
	}
	return all
}
