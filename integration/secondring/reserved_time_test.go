package secondring_test

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

// What an object keeps is somebody's decision of now: when it goes, or its pod is
// back, nothing of the time before counts.
func TestAllocationThatIsTakenBackEndsAtOnce(t *testing.T) {
	s := newScene(t)
	s.leak("web-0")
	s.reserve("ReservedIP", "web", `"spec":{"pod":"web-0","ttl":"never"}`)
	s.wantSaid(s.reap(reap.ExitDone, patient+allocations).Report, decisions{"web-0": reserved, "object web": reserved})
	s.pass(time.Hour)
	s.pod("web-0")
	s.wantSaid(s.reap(reap.ExitDone, patient+allocations).Report, decisions{"web-0": present, "object web": present})
	s.dies("web-0")
	s.wantSaid(s.reap(reap.ExitDone, patient+allocations).Report, decisions{"web-0": reserved, "object web": reserved})
	s.must(s.objects("ReservedIP").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	s.wantSaid(s.reap(reap.ExitDone, patient+allocations).Report, decisions{"web-0": suspected})
	s.pass(time.Hour)
	s.wantSaid(s.reap(reap.ExitDone, patient+allocations).Report, decisions{"web-0": released})
}

// A release that failed when the TTL was over does not begin it anew (promise 8).
func TestTTLThatIsOverStaysOver(t *testing.T) {
	s := newScene(t)
	ip := s.leak("web-0")
	s.reserve("ReservedIP", "web", fmt.Sprintf(`"spec":{"ttl":"2h"},"status":{"ips":[%q]}`, ip))
	s.wantSaid(s.reap(reap.ExitDone, atOnce+allocations).Report, decisions{"web-0": reserved, "object web": reserved})
	s.pass(3 * time.Hour)
	s.toReaper.Before(proxy.On("patch ippools"), proxy.Always(proxy.Forbidden()))
	s.wantSaid(s.reap(reap.ExitPartial, atOnce+allocations).Report,
		decisions{"web-0": "orphan PodAbsent failed", "object web": "orphan PodAbsent kept"})
	s.toReaper.Reset()
	s.wantSaid(s.reap(reap.ExitDone, atOnce+allocations).Report, decisions{"web-0": released, "object web": released})
}

// Addresses are addresses, whatever store they are of: kept by themselves, or all
// that a pod has.
func TestAddressesOfAnyStoreAreReserved(t *testing.T) {
	c := newTown(t)
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
	d, err := c.moveIn(t.Context(), "web-0")
	c.must(err)
	c.reserve("ReservedIP", "of-pod", `"spec":{"pod":"web-0","ttl":"1h"}`)
	c.reserve("ClusterReservedIP", "of-address", fmt.Sprintf(`"spec":{"ip":%q,"ttl":"never"}`, d.eth0))
	want(reap.ExitDone, everywhere+"backends:\n"+allocations, both(reserved, reserved))
	c.drop("of-pod")
	c.toReaper.Before(proxy.On("list clusterreservedips"), proxy.Always(proxy.Forbidden()))
	want(reap.ExitPartial, everywhere+"backends:\n"+allocations, both(reserved, reserved))
	c.toReaper.Reset()
	want(reap.ExitDone, everywhere+"backends:\n"+allocations, both(reserved, released))
	want(reap.ExitDone, everywhere+"backends:\n"+allocations, decisions{"web-0 calico": reserved})
}
