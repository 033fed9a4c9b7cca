package secondring_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// lease is the lock as it is stored.
func (s *scene) lease() *coordinationv1.Lease {
	s.Helper()
	lease, err := s.Kube.CoordinationV1().Leases(home).Get(s.Context(), "ip-reaper", metav1.GetOptions{})
	s.must(err)
	return lease
}

// held starts a run and returns when it has the lock and is about to list pods, which
// it does when the gate is opened. Other runs go through a proxy of their own then.
func (s *scene) held(policy string) (*reap.Process, *proxy.Gate) {
	s.Helper()
	gate := proxy.NewGate()
	s.toReaper.Before(proxy.First(1, proxy.On("list pods")), gate.Hook)
	p := s.start(policy)
	<-gate.Arrived()
	s.toReaper, s.kubeconfig = s.proxy()
	return p, gate
}

// Two runs do not go on at the same time: the second says whose turn it is, and since
// when, and does nothing. One that only looks is in nobody's way.
func TestSecondRunLeavesTheFirstAlone(t *testing.T) {
	s := newScene(t)
	s.leak("web-0")
	first, gate := s.held(atOnce)
	before := s.versions()

	second := s.reap(reap.ExitLocked, atOnce)
	if len(second.Report.Entries) > 0 || len(second.Report.Backends) > 0 {
		t.Errorf("a run that was locked out looked at %+v", second.Report)
	}
	if asked := s.toReaper.Counts(); len(asked) != 1 || asked["get leases"] != 1 {
		t.Errorf("a run that was locked out asked for %v, want only the lease", asked)
	}
	s.wantSaid(s.reap(reap.ExitDone, atOnce, "--dry-run").Report, decisions{"web-0": "orphan PodAbsent planned"})
	s.wantUnwritten(before)
	since := s.lease().Spec.AcquireTime.UTC().Format(time.RFC3339)

	gate.Open()
	report := first.EndT(s, reap.ExitDone).Report
	s.wantSaid(report, decisions{"web-0": released})
	s.wantText(second.Stderr, fmt.Sprintf("ip-reaper: %s has been running since %s (lease %s/ip-reaper); nothing was done", report.Run.ID, since, home))
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{})
}

// A run that was killed cannot give its lock back: it keeps others away until it has
// expired.
func TestLockOfAKilledRunIsTakenOverWhenItHasExpired(t *testing.T) {
	s := newScene(t)
	s.leak("web-0")
	killed, gate := s.held(atOnce)
	s.must(killed.Kill())
	_, err := killed.Wait()
	s.must(err)
	gate.Open()
	holder := *s.lease().Spec.HolderIdentity
	if locked := s.reap(reap.ExitLocked, atOnce); holder == "" || !strings.Contains(locked.Stderr, holder) {
		t.Errorf("%q had the lock, and the next run said\n%s", holder, locked.Stderr)
	}
	lease := s.lease()
	lease.Spec.RenewTime = new(metav1.NewMicroTime(lease.Spec.RenewTime.Add(-time.Minute)))
	_, err = s.Kube.CoordinationV1().Leases(home).Update(t.Context(), lease, metav1.UpdateOptions{})
	s.must(err)
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": released})
	if after := s.lease().Spec; *after.HolderIdentity != "" || *after.LeaseTransitions != 1 {
		t.Errorf("the lease is %q's after %d transitions, want nobody's after one", *after.HolderIdentity, *after.LeaseTransitions)
	}
}

// Nothing that is safe rests on the lock: one that cannot be had is a warning.
func TestRunGoesOnWithoutALock(t *testing.T) {
	for _, request := range []string{"get leases", "create leases"} {
		t.Run(request, func(t *testing.T) {
			s := newScene(t)
			s.leak("web-0")
			s.toReaper.Before(proxy.On(request), proxy.Always(proxy.Forbidden()))
			report := s.reap(reap.ExitDone, atOnce).Report
			s.wantSaid(report, decisions{"web-0": released})
			s.wantText(strings.Join(report.Warnings, "\n"), "nothing keeps another run away: lease "+home+"/ip-reaper: injected: forbidden")
		})
	}
}
