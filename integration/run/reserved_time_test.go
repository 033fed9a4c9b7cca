package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// The addresses of every store are protected: by themselves, or as all that a pod
// has.
func TestAddressesOfAnyStoreAreReserved(t *testing.T) {
	c := newTwoStores(t)
	both := func(block, entry string) decisions {
		return decisions{"web-0 calico": block, "web-0 whereabouts": entry, "web-0 overlapping": entry}
	}
	want := func(exit int, policy string, want decisions) {
		t.Helper()
		got := decisions{}
		for _, e := range c.reap(exit, policy).Report.Entries {
			if e.Backend != "reservedIPs" {
				got[e.Owner.Pod+" "+e.Backend] = strings.Join([]string{e.Decision, e.Reason, e.Outcome}, " ")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
	}
	d, err := c.add(t.Context(), "web-0")
	c.must(err)
	c.reserve("ReservedIP", "of-pod", `"spec":{"pod":"web-0","ttl":"1h"}`)
	c.reserve("ClusterReservedIP", "of-address", fmt.Sprintf(`"spec":{"ip":%q,"ttl":"never"}`, d.eth0))
	want(reap.ExitDone, everywhere+"backends:\n"+reservedIPs, both(reserved, reserved))
	c.drop("of-pod")
	c.toReaper.Before(proxy.On("list clusterreservedips"), proxy.Always(proxy.Forbidden()))
	want(reap.ExitPartial, everywhere+"backends:\n"+reservedIPs, both(reserved, reserved))
	c.toReaper.Reset()
	want(reap.ExitDone, everywhere+"backends:\n"+reservedIPs, both(reserved, released))
	want(reap.ExitDone, everywhere+"backends:\n"+reservedIPs, decisions{"web-0 calico": reserved})
}
