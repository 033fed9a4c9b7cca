package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// When an object goes that kept an address, or when its pod is back, the time before does
// not count.
func TestReservedIPThatIsTakenBackEndsAtOnce(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	f.reserve("ReservedIP", "web", `"spec":{"pod":"web-0","ttl":"never"}`)
	f.wantSaid(f.reap(reap.ExitDone, patient+reservedIPs).Report, decisions{"web-0": reserved, "object web": reserved})
	f.pass(time.Hour)
	f.pod("web-0")
	f.wantSaid(f.reap(reap.ExitDone, patient+reservedIPs).Report, decisions{"web-0": present, "object web": present})
	f.dies("web-0")
	f.wantSaid(f.reap(reap.ExitDone, patient+reservedIPs).Report, decisions{"web-0": reserved, "object web": reserved})
	f.must(f.objects("ReservedIP").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	f.wantSaid(f.reap(reap.ExitDone, patient+reservedIPs).Report, decisions{"web-0": suspected})
	f.pass(time.Hour)
	f.wantSaid(f.reap(reap.ExitDone, patient+reservedIPs).Report, decisions{"web-0": released})
}

// A release that failed when the TTL was over does not begin it anew (promise 8).
func TestTTLThatIsOverStaysOver(t *testing.T) {
	f := newFixture(t)
	ip := f.leak("web-0")
	f.reserve("ReservedIP", "web", fmt.Sprintf(`"spec":{"ttl":"2h"},"status":{"ips":[%q]}`, ip))
	f.wantSaid(f.reap(reap.ExitDone, atOnce+reservedIPs).Report, decisions{"web-0": reserved, "object web": reserved})
	f.pass(3 * time.Hour)
	f.toReaper.Before(proxy.On("patch ippools"), proxy.Always(proxy.Forbidden()))
	f.wantSaid(f.reap(reap.ExitPartial, atOnce+reservedIPs).Report,
		decisions{"web-0": failed, "object web": spared})
	f.toReaper.Reset()
	f.wantSaid(f.reap(reap.ExitDone, atOnce+reservedIPs).Report, decisions{"web-0": released, "object web": released})
}

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
