package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// managedFields change with each write. They must not fill an object, so that no other
// client can write it any more.
func TestManagedFieldsDoNotFillAnObject(t *testing.T) {
	f := newFixture(t)
	fields := func(manager, version string, n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf(`"f:%0100d":{}`, i))
		}
		return fmt.Sprintf(`[{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"%s","operation":"Update","apiVersion":"%s",
			"time":"2026-11-22T07:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{%s}}}]}`, manager, version, strings.Join(names, ","))
	}
	const whereabouts, calico, leases = "whereabouts.cni.cncf.io/v1alpha1", "crd.projectcalico.org/v1", "coordination.k8s.io/v1"
	// created is an object with managedFields of its own.
	created := func(object, manager, version string) string {
		filled := fields(manager, version, 100)
		return strings.Replace(object, `"metadata":{`, `"metadata":{"managedFields":`+filled[strings.Index(filled, `"value":`)+len(`"value":`):len(filled)-1]+`,`, 1)
	}
	for account, manager := range map[string]string{reap.RunAccount: "x", reap.OutageAccount: "ip-reaper"} {
		f.each(account, []write{
			{"fill a pool", "writes", "patch", "pool: kube-system/pool", fields(manager, whereabouts, 12_000) + "]"},
			{"fill a pool a little", "writes", "patch", "pool: kube-system/pool", fields(manager, whereabouts, 100) + "]"},
			{"fill a handle", "writes", "patch", "handle: h1", fields(manager, calico, 100) + "]"},
			{"fill a reservation", "writes", "patch", "reservation: kube-system/10.0.0.2", fields(manager, whereabouts, 100) +
				`,{"op":"replace","path":"/spec/podref","value":"shop/two"},{"op":"remove","path":"/metadata/annotations/ip-reaper~1spec"}]`},
			{"fill a block", "writes", "patch", "block: block", fields(manager, calico, 100) + "," + theBlock().free(1).patch(t)[1:]},
			{"forget the managers", "", "patch", "pool: kube-system/pool", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`},
		})
		f.each(reap.RestoreAccount, []write{
			{"fill a pool", "writes", "patch", "pool: kube-system/pool", fields(manager, whereabouts, 12_000) + "]"},
			{"fill a pool a little", "writes", "patch", "pool: kube-system/pool", fields(manager, whereabouts, 100) +
				`,{"op":"add","path":"/spec/allocations/9","value":{"id":"c9","podref":"shop/nine"}}]`},
			{"fill a handle", "writes", "patch", "handle: h1", fields(manager, calico, 100) + "]"},
			{"create a filled handle", "writes", "create", "handle: ", created(newHandle("k8s-pod-network.c9", `"10.1.0.0/26":1`), manager, calico)},
			{"fill a reservation", "writes", "patch", "reservation: kube-system/10.0.0.2", fields(manager, whereabouts, 100) +
				`,{"op":"replace","path":"/spec/podref","value":"shop/two"},{"op":"remove","path":"/metadata/annotations/ip-reaper~1spec"}]`},
			{"create a filled reservation", "writes", "create", "reservation: ",
				created(reservation("10.0.0.9", `{"podref":"shop/nine"}`, ``), manager, whereabouts)},
			{"fill a block", "writes", "patch", "block: block", fields(manager, calico, 100) + "," + theBlock().take(9, "h9").patch(t)[1:]},
		})
		for _, account := range []string{reap.RunAccount, reap.OutageAccount, reap.RestoreAccount} {
			f.each(account, []write{
				{"fill the ledger", "writes", "patch", "configmap: ip-reaper/ip-reaper-ledger", fields(manager, "v1", 100) + "]"},
				{"create a filled journal", "writes", "create", "configmap: ", created(configMap("ip-reaper", "ip-reaper-journal-9-1-1"), manager, "v1")},
				{"fill the lease", "writes", "patch", "lease: ip-reaper/ip-reaper", fields(manager, leases, 100) + "]"},
				{"create a filled lease", "writes", "create", "lease: ", created(lease("ip-reaper", "ip-reaper"), manager, leases)},
			})
		}
	}
}
