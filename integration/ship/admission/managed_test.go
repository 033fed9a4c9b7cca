package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/admission"
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
	const whereabouts, calico = "whereabouts.cni.cncf.io/v1alpha1", "crd.projectcalico.org/v1"
	for account, manager := range map[string]string{admission.Reaper: "x", admission.Outage: "ip-reaper"} {
		f.each(account, []write{
			{"fill a pool", "pools", "patch", "pool: kube-system/pool", fields(manager, whereabouts, 12_000) + "]"},
			{"fill a pool a little", "pools", "patch", "pool: kube-system/pool", fields(manager, whereabouts, 100) + "]"},
			{"fill a handle", "handles", "patch", "handle: h1", fields(manager, calico, 100) + "]"},
			{"fill a reservation", "reservations", "patch", "reservation: kube-system/10.0.0.2", fields(manager, whereabouts, 100) +
				`,{"op":"replace","path":"/spec/podref","value":"shop/two"},{"op":"remove","path":"/metadata/annotations/ip-reaper~1spec"}]`},
			{"fill a block", "blocks", "patch", "block: block", fields(manager, calico, 100) + "," + theBlock().free(1).patch(t)[1:]},
			{"forget the managers", "", "patch", "pool: kube-system/pool", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`},
		})
	}
}
