package run_test

import (
	"fmt"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A pod claims in an annotation the address that another pod leaked. The claim keeps it,
// and the report names the pod, until the policy believes only annotations of the pod that
// the allocation names. A pod with a true annotation keeps its address under both.
func TestClaimOnTheAddressOfAnotherPod(t *testing.T) {
	f := newFixture(t)
	ip := f.leak("web-0")
	f.live("web-1")
	f.pod("squatter", cluster.PodIPs("10.99.0.9"), cluster.Networks(cluster.Attached("shop/net", "net1", ip)))

	kept := f.reap(reap.ExitDone, atOnce).Report
	f.wantSaid(kept, decisions{"web-0": "inUse AddressInUse kept", "web-1": "inUse PodPresent kept"})
	f.wantText(fmt.Sprint(kept.Warnings), "allocations are kept only by annotations of pods that they do not name: shop/squatter (1, such as "+ip+
		"). If the annotations are false, correct them, or set evidence.annotations to own")

	narrowed := f.reap(reap.ExitDone, atOnce+"evidence: {annotations: own}\n").Report
	f.wantSaid(narrowed, decisions{"web-0": released, "web-1": "inUse PodPresent kept"})
	if len(narrowed.Warnings) > 0 {
		t.Errorf("warnings %v, want none", narrowed.Warnings)
	}
}
