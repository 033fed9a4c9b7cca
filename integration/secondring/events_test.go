package secondring_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// describe is what kubectl tells people of a pool.
func (s *scene) describe(pool string) string {
	s.Helper()
	out, err := s.Kubectl(s.Context(), "", "-n", cluster.PoolNamespace, "describe", "ippools.whereabouts.cni.cncf.io", pool)
	if err != nil {
		s.Fatalf("kubectl describe: %v\n%s", err, out)
	}
	return out
}

// Whoever describes a pool reads there what was released from it, by which run and
// why.
func TestReleasesAreFoundByDescribe(t *testing.T) {
	s := newScene(t)
	ip := s.leak("web-0")
	report := s.reap(reap.ExitDone, atOnce).Report
	s.wantText(s.describe("10.0.0.0-24"), fmt.Sprintf("%s of shop/web-0 (PodAbsent) released by run %s", ip, report.Run.ID))
	if len(report.Warnings) > 0 {
		t.Errorf("warnings %v", report.Warnings)
	}
}

// Events are a courtesy: one that cannot be written is a warning, and not a failure
// of what was done.
func TestRunThatMayNotTellDoesItsWork(t *testing.T) {
	s := newScene(t)
	s.leak("web-0")
	s.toReaper.Before(proxy.On("create events"), proxy.Always(proxy.Forbidden()))
	report := s.reap(reap.ExitDone, atOnce).Report
	s.wantSaid(report, decisions{"web-0": released})
	s.wantText(strings.Join(report.Warnings, "\n"), "not every event was written: 1 of 1 events not written: "+
		"AddressReleased about IPPool 10.0.0.0-24 in namespace "+cluster.PoolNamespace+": injected: forbidden")
}

// A run that only looks, or refuses, tells nobody; and of many releases a hundred are
// told.
func TestEventsOfARunAreLimited(t *testing.T) {
	const leaks = 120
	s := newScene(t)
	pool := &v1alpha1.IPPool{
		ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.0-24"},
		Spec:       v1alpha1.IPPoolSpec{Range: "10.0.0.0/24", Allocations: map[string]v1alpha1.IPAllocation{}},
	}
	for i := range leaks {
		pool.Spec.Allocations[fmt.Sprint(i+1)] = v1alpha1.IPAllocation{
			ContainerID: "sandbox", PodRef: fmt.Sprintf("%s/web-%d", shop, i), IfName: "net1",
		}
	}
	_, err := s.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Create(t.Context(), pool, metav1.CreateOptions{})
	s.must(err)
	told := func(want int) {
		t.Helper()
		list, err := s.Kube.EventsV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
		s.must(err)
		if len(list.Items) != want {
			t.Errorf("%d events, want %d", len(list.Items), want)
		}
	}
	s.reap(reap.ExitDone, patient, "--dry-run")
	s.reap(reap.ExitLimit, atOnce)
	told(0)
	if got := s.reap(reap.ExitDone, atOnce+"limits: {maxFraction: 1}\n").Report.Summary.Released; got != leaks {
		t.Errorf("%d were released, want %d", got, leaks)
	}
	told(100)
}
