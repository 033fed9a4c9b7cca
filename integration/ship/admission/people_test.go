package admission_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// People in the group may write to the objects of a release and of a restore what either account may:
// one write either gives back or puts back. What else they may write, their roles say: also ConfigMaps and
// leases of other namespaces, whatever their names. People outside of the group, such as administrators, are
// not held.
func TestPeopleReleaseAndRestoreAndNothingElseThere(t *testing.T) {
	f := newFixture(t)
	f.must(f.CreateNamespace(t.Context(), "my-ip-reaper"))
	f.user("administrator", "admin")
	const pool, allocation, data = "pool: kube-system/pool", "/spec/allocations/", `[{"op":"add","path":"/data","value":{"a":"b"}}]`
	add := `{"op":"add","path":"` + allocation + `9","value":{"id":"c9","podref":"shop/nine","ifname":"net1"}}`
	remove := `{"op":"remove","path":"` + allocation + `1"}`
	count := func(n, elsewhere string) string {
		return `[{"op":"add","path":"/spec/block/10.1.0.0~126","value":` + n + `},{"op":"add","path":"/spec/block/10.2.0.0~126","value":` + elsewhere + `}]`
	}
	writes := []write{
		{"take an allocation out", "", "patch", pool, "[" + remove + "]"},
		{"put an allocation in", "", "patch", pool, "[" + add + "]"},
		{"do both", "writes", "patch", pool, "[" + remove + "," + add + "]"},
		{"put two in and take one out", "writes", "patch", pool,
			"[" + remove + "," + add + `,{"op":"add","path":"` + allocation + `8","value":{"id":"c8","podref":"shop/eight","ifname":"net1"}}]`},
		{"change an owner", "writes", "patch", pool, `[{"op":"replace","path":"` + allocation + `1/podref","value":"evil/pod"}]`},
		{"change the range", "writes", "patch", pool, `[{"op":"replace","path":"/spec/range","value":"10.0.0.0/32"}]`},
		{"change the range with an allocation", "writes", "patch", pool, "[" + add + `,{"op":"replace","path":"/spec/range","value":"10.0.0.0/16"}]`},

		{"count down", "", "patch", "handle: h1", count("1", "1")},
		{"count up", "", "patch", "handle: h1", count("3", "1")},
		{"count up and down", "writes", "patch", "handle: h1", count("1", "2")},
		{"label a handle", "writes", "patch", "handle: h1", `[{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]`},
		{"create a handle", "", "create", "handle: ", newHandle("k8s-pod-network."+sandbox, `"10.9.0.0/26":1`)},
		{"create the handle of a tunnel", "writes", "create", "handle: ", newHandle("vxlan-tunnel-addr-node-1", `"10.9.0.0/26":1`)},
		{"delete a handle", "", "delete", "handle: h1", ``},

		{"create a reservation", "", "create", "reservation: ", reservation("10.0.0.9", `{"podref":"shop/nine"}`, ``)},
		{"create one without a pod", "writes", "create", "reservation: ", reservation("10.0.0.9", `{"podref":""}`, ``)},
		{"put back the spec of a tombstone", "", "patch", "reservation: kube-system/10.0.0.2",
			`[{"op":"replace","path":"/spec/podref","value":"shop/two"},{"op":"remove","path":"/metadata/annotations/ip-reaper~1spec"}]`},
		{"change the owner of a reservation", "writes", "patch", "reservation: kube-system/10.0.0.1", `[{"op":"replace","path":"/spec/podref","value":"evil/pod"}]`},
		{"delete a reservation without a tombstone", "writes", "delete", "reservation: kube-system/10.0.0.1", ``},
		{"delete one with a tombstone", "", "delete", "reservation: kube-system/10.0.0.2", ``},

		{"write the ledger", "", "patch", "configmap: ip-reaper/ip-reaper-ledger", data},
		{"create a journal", "", "create", "configmap: ", configMap("ip-reaper", "ip-reaper-journal-20261122-070000-abcdef-1-1")},
		{"change a journal", "writes", "patch", "configmap: ip-reaper/ip-reaper-journal-1-1-1", data},
		{"change the policy", "writes", "patch", "configmap: ip-reaper/ip-reaper-policy", data},
		{"delete the policy", "writes", "delete", "configmap: ip-reaper/ip-reaper-policy", ``},
		{"create any ConfigMap there", "writes", "create", "configmap: ", configMap("ip-reaper", "mine")},
		{"hold the lease", "", "patch", "lease: ip-reaper/ip-reaper", `[{"op":"add","path":"/spec","value":{"holderIdentity":"a"}}]`},
		{"hold another lease there", "writes", "patch", "lease: ip-reaper/other", `[{"op":"add","path":"/spec","value":{"holderIdentity":"a"}}]`},
	}
	writes = append(writes, tried(t, theBlock(), []changed{
		{"free an address", "", func(b *blockSpec) { *b = b.free(1) }},
		{"allocate an address", "", func(b *blockSpec) { *b = b.take(9, "h9") }},
		{"free one and allocate another", "writes", func(b *blockSpec) { *b = b.free(1).take(9, "h9") }},
		{"change an owner of a block", "writes", func(b *blockSpec) { b.Attributes[0] = attribute("evil") }},
		{"change the affinity and allocate", "writes", func(b *blockSpec) { *b = b.take(9, "h9"); b.Affinity = "host:evil" }},
	})...)
	f.each(operator, append(writes, []write{
		{"create a pod", "", "create", "pod: ", pod("new")},
		{"taint a node", "", "patch", "node: node-1", `[{"op":"add","path":"/spec/taints","value":[{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}]}]`},
		{"create a ConfigMap elsewhere", "", "create", "configmap: ", configMap("my-ip-reaper", "ip-reaper-policy")},
		{"change a ConfigMap elsewhere", "", "patch", "configmap: kube-system/ip-reaper-journal-1-1-1", data},
		{"delete a ConfigMap elsewhere", "", "delete", "configmap: kube-system/ip-reaper-ledger", ``},
		{"label a lease elsewhere", "", "patch", "lease: kube-system/ip-reaper", `[{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]`},
	}...))
	for i := range writes {
		writes[i].by = ""
	}
	f.each("administrator", writes)
}

// An account stays one in that group, where nobody puts it but by impersonation.
func TestAccountInTheGroupIsNoPerson(t *testing.T) {
	f := newFixture(t)
	const pool, allocation = "pool: kube-system/pool", "/spec/allocations/"
	remove := `[{"op":"remove","path":"` + allocation + `1"}]`
	add := `[{"op":"add","path":"` + allocation + `9","value":{"id":"c9","podref":"shop/nine","ifname":"net1"}}]`
	f.user("run", "system:serviceaccount:ip-reaper:ip-reaper", reap.Operators)
	f.user("restore", "system:serviceaccount:ip-reaper:ip-reaper-restore", reap.Operators)
	f.each("run", []write{
		{"take an allocation out", "", "patch", pool, remove},
		{"put an allocation in", "writes", "patch", pool, add},
		{"delete a ConfigMap elsewhere", "writes", "delete", "configmap: kube-system/ip-reaper-ledger", ``},
	})
	f.each("restore", []write{
		{"take an allocation out", "writes", "patch", pool, remove},
		{"put an allocation in", "", "patch", pool, add},
	})
}
