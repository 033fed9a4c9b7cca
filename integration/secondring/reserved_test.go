package secondring_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// An address that somebody keeps back is held until the deletion of its pod plus the
// TTL, where nobody tells that from the first run that missed the pod. Of several
// that keep it the longest counts. Then the address goes, and after it, where the
// policy says so, the object.
func TestReservedAddressesAreHeldUntilTheirTTLIsOver(t *testing.T) {
	s := newScene(t)
	s.network = wide
	ips := map[string]string{}
	for _, pod := range []string{"over", "running", "first-sight", "for-good", "twice", "wide", "free"} {
		ips[pod] = s.leak(pod)
	}
	ofPod := func(pod, ttl, deletedAt string) string {
		return fmt.Sprintf(`"spec":{"pod":%q,"ttl":%q},"status":{"deletedAt":%q}`, pod, ttl, deletedAt)
	}
	ofAddress := func(pod, ttl string) string {
		return fmt.Sprintf(`"spec":{"ttl":%q},"status":{"ips":[%q]}`, ttl, ips[pod])
	}
	s.reserve("ReservedIP", "over", ofPod("over", "2h", ago(3*time.Hour)))
	s.reserve("ReservedIP", "running", ofPod("running", "10h", ago(3*time.Hour)))
	s.reserve("ReservedIP", "first-sight", ofAddress("first-sight", "2h"))
	s.reserve("ReservedIP", "for-good", ofAddress("for-good", "never"))
	s.reserve("ReservedIP", "twice-long", ofAddress("twice", "5h"))
	s.reserve("ReservedIP", "twice-over", ofPod("twice", "2h", ago(3*time.Hour)))
	s.reserve("ClusterReservedIP", "wide", fmt.Sprintf(`"spec":{"ip":%q,"ttl":60}`, ips["wide"]))

	all := decisions{
		"over": suspected, "object over": suspected, "free": suspected,
		"running": reserved, "object running": reserved,
		"first-sight": reserved, "object first-sight": reserved,
		"for-good": reserved, "object for-good": reserved,
		"twice": reserved, "object twice-over": suspected, "object twice-long": reserved,
		"wide": suspected, "object wide": reserved, // after grace, which is longer than a minute
	}
	policy := patient + allocations
	report := s.reap(reap.ExitDone, policy).Report
	s.wantSaid(report, all)
	for _, e := range report.Entries {
		if e.Owner.Pod == "twice" && e.Backend != "reservedIPs" {
			s.wantText(e.Note, "twice-long keeps it until ")
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
	s.pass(30 * time.Minute)
	change(released, "over", "object over", "free", "wide")
	s.wantSaid(s.reap(reap.ExitDone, policy, "--dry-run").Report, planned(all))
	s.wantObjects("first-sight", "for-good", "over", "running", "twice-long", "twice-over")
	s.wantSaid(s.reap(reap.ExitDone, policy).Report, all)
	s.wantObjects("first-sight", "for-good", "running", "twice-long", "twice-over")
	gone("over", "object over", "free", "wide")

	s.pass(2 * time.Hour)
	change(released, "first-sight", "object first-sight")
	s.wantSaid(s.reap(reap.ExitDone, policy).Report, all)
	s.wantObjects("for-good", "running", "twice-long", "twice-over")
	gone("first-sight", "object first-sight")

	s.pass(3 * time.Hour)
	change(released, "twice", "object twice-over", "object twice-long")
	s.wantSaid(s.reap(reap.ExitDone, policy).Report, all)
	s.wantObjects("for-good", "running")
	_, err := s.objects("ClusterReservedIP").Get(t.Context(), "wide", metav1.GetOptions{})
	s.must(err) // the policy has it stay
}

// planned are the verdicts of a dry run.
func planned(all decisions) decisions {
	dry := decisions{}
	for name, decision := range all {
		dry[name] = strings.Replace(decision, " released", " planned", 1)
	}
	return dry
}
