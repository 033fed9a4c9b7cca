package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// An address that an object protects is held until the deletion of its pod plus the TTL.
// If the object does not tell the deletion, the first run that missed the pod counts. If
// several objects protect an address, the longest TTL wins. Then the address goes, and
// after it, if the policy says so, the object.
func TestReservedAddressesAreHeldUntilTheirTTLIsOver(t *testing.T) {
	f := newFixture(t)
	f.network = wide
	ips := map[string]string{}
	for _, pod := range []string{"over", "running", "first-sight", "for-good", "twice", "wide", "free"} {
		ips[pod] = f.leak(pod)
	}
	ofPod := func(pod, ttl, deletedAt string) string {
		return fmt.Sprintf(`"spec":{"pod":%q,"ttl":%q},"status":{"deletedAt":%q}`, pod, ttl, deletedAt)
	}
	ofAddress := func(pod, ttl string) string {
		return fmt.Sprintf(`"spec":{"ttl":%q},"status":{"ips":[%q]}`, ttl, ips[pod])
	}
	f.reserve("ReservedIP", "over", ofPod("over", "2h", ago(3*time.Hour)))
	f.reserve("ReservedIP", "running", ofPod("running", "10h", ago(3*time.Hour)))
	f.reserve("ReservedIP", "first-sight", ofAddress("first-sight", "2h"))
	f.reserve("ReservedIP", "for-good", ofAddress("for-good", "never"))
	f.reserve("ReservedIP", "twice-long", ofAddress("twice", "5h"))
	f.reserve("ReservedIP", "twice-over", ofPod("twice", "2h", ago(3*time.Hour)))
	f.reserve("ClusterReservedIP", "wide", fmt.Sprintf(`"spec":{"ip":%q,"ttl":60}`, ips["wide"]))

	all := decisions{
		"over": suspected, "object over": suspected, "free": suspected,
		"running": reserved, "object running": reserved,
		"first-sight": reserved, "object first-sight": reserved,
		"for-good": reserved, "object for-good": reserved,
		"twice": reserved, "object twice-over": suspected, "object twice-long": reserved,
		"wide": suspected, "object wide": reserved, // after grace, which is longer than a minute
	}
	policy := patient + reservedIPs
	report := f.reap(reap.ExitDone, policy).Report
	f.wantSaid(report, all)
	for _, e := range report.Entries {
		if e.Owner.Pod == "twice" && e.Backend != "reservedIPs" {
			f.wantText(e.Note, "twice-long keeps it until ")
		}
	}

	change := func(to string, of ...string) {
		for _, name := range of {
			all[name] = to
		}
	}
	gone := func(names ...string) {
		for _, name := range names {
			delete(all, name)
		}
	}
	f.pass(30 * time.Minute)
	change(released, "over", "object over", "free", "wide")
	f.wantSaid(f.reap(reap.ExitDone, policy, "--dry-run").Report, inDryRun(all))
	f.wantObjects("first-sight", "for-good", "over", "running", "twice-long", "twice-over")
	f.wantSaid(f.reap(reap.ExitDone, policy).Report, all)
	f.wantObjects("first-sight", "for-good", "running", "twice-long", "twice-over")
	gone("over", "object over", "free", "wide")

	f.pass(2 * time.Hour)
	change(released, "first-sight", "object first-sight")
	f.wantSaid(f.reap(reap.ExitDone, policy).Report, all)
	f.wantObjects("for-good", "running", "twice-long", "twice-over")
	gone("first-sight", "object first-sight")

	f.pass(3 * time.Hour)
	change(released, "twice", "object twice-over", "object twice-long")
	f.wantSaid(f.reap(reap.ExitDone, policy).Report, all)
	f.wantObjects("for-good", "running")
	_, err := f.objects("ClusterReservedIP").Get(t.Context(), "wide", metav1.GetOptions{})
	f.must(err) // the policy does not allow its release
}

// inDryRun are the decisions of a dry run.
func inDryRun(all decisions) decisions {
	dry := decisions{}
	for name, decision := range all {
		dry[name] = strings.Replace(decision, " released", " planned", 1)
	}
	return dry
}
