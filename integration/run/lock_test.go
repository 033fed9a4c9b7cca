package run_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// lease returns the lock as stored.
func (f *fixture) lease() *coordinationv1.Lease {
	f.Helper()
	lease, err := f.Kube.CoordinationV1().Leases(home).Get(f.Context(), "ip-reaper", metav1.GetOptions{})
	f.must(err)
	return lease
}

// held starts a run and returns when it has the lock and is about to list pods, which it does once
// the gate is opened. Later runs go through another proxy.
func (f *fixture) held(policy string) (*reap.Process, *proxy.Gate) {
	f.Helper()
	gate := proxy.NewGate()
	f.toReaper.Before(proxy.First(1, proxy.On("list pods")), gate.Hook)
	p := f.start(policy)
	<-gate.Arrived()
	f.toReaper, f.kubeconfig = f.proxy()
	return p, gate
}

// Two runs do not work at the same time: the second says which run has the lock, and since when,
// and does nothing. A dry run takes no lock.
func TestSecondRunLeavesTheFirstAlone(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	first, gate := f.held(atOnce)
	before := f.versions()

	second := f.reap(reap.ExitLocked, atOnce)
	if len(second.Report.Entries) > 0 || len(second.Report.Backends) > 0 {
		t.Errorf("a run that was locked out looked at %+v", second.Report)
	}
	// Before the lock, it checks that there is an API server, which policy is installed, and that the
	// state is where it should be.
	looks := map[string]int{
		"GET /version": 1, "get configmaps": 1, "get namespaces": 1, "list configmaps": 1, "list leases": 1, "get leases": 1,
	}
	if diff := cmp.Diff(looks, f.toReaper.Counts()); diff != "" {
		t.Errorf("requests of a run that was locked out (-want +got):\n%s", diff)
	}
	f.wantSaid(f.reap(reap.ExitDone, atOnce, "--dry-run").Report, decisions{"web-0": planned})
	f.wantUnwritten(before)
	since := f.lease().Spec.AcquireTime.UTC().Format(time.RFC3339)

	gate.Open()
	report := first.EndT(f, reap.ExitDone).Report
	f.wantSaid(report, decisions{"web-0": released})
	f.wantText(second.Stderr, fmt.Sprintf("ip-reaper: another run is in progress: %s, since %s (lease %s/ip-reaper); nothing was done", report.Run.ID, since, home))
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{})
}
