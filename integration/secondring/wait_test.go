package secondring_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// short is a policy whose grace period a test can sit out, but for the pods of a
// rule.
const short = header + noCalico + "gracePeriod: 1s\nrules:\n- match: {pods: [\"slow-*\"]}\n  gracePeriod: 1h\n"

// ledgerWritten selects the first writing of the ledger, which ends a look that
// releases nothing.
func ledgerWritten(r proxy.Request) bool {
	return r.String() == "create configmaps" && strings.Contains(string(r.Body), ledgerName)
}

// One run sits out the grace period and releases. Its timeout is that of a look, and
// does not count the waiting.
func TestRunWaitsForTheEndOfTheGracePeriod(t *testing.T) {
	s := newScene(t)
	s.live("web-0")
	s.leak("web-1")
	policy := strings.Replace(short, "gracePeriod: 1s", "gracePeriod: 6s", 1)
	report := s.reap(reap.ExitDone, policy, "--wait", "--timeout=5s").Report
	s.wantSaid(report, decisions{"web-0": present, "web-1": released})
	if took := report.Run.FinishedAt.Sub(report.Run.StartedAt); took < 6*time.Second {
		t.Errorf("the run took %v, which is less than the grace period", took)
	}
	if pools := report.Pools; len(pools) != 1 || pools[0].AllocatedBefore != 2 || pools[0].AllocatedAfter != 1 {
		t.Errorf("pools %+v, want one that had 2 and has 1", pools)
	}
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": present})
}

// Promise 5.
func TestDryRunWaitsToo(t *testing.T) {
	s := newScene(t)
	s.leak("web-0")
	before := s.versions()
	s.wantSaid(s.reap(reap.ExitDone, short, "--wait", "--dry-run").Report, decisions{"web-0": "orphan PodAbsent planned"})
	s.wantUnwritten(before)
	if asked := s.toReaper.Mutations(); len(asked) > 0 {
		t.Errorf("a dry run asked for %v", asked)
	}
}

// Who comes back meanwhile keeps the address; who leaves meanwhile has a grace period
// of its own, which this run does not wait for (promise 1).
func TestPodThatComesBackWhileARunWaitsKeepsItsAddress(t *testing.T) {
	s := newScene(t)
	for _, pod := range []string{"back", "gone"} {
		s.leak(pod)
	}
	s.live("leaves")
	s.toReaper.After(proxy.First(1, ledgerWritten), func(context.Context, proxy.Request) proxy.Action {
		s.pod("back")
		s.dies("leaves")
		return proxy.Pass()
	})
	s.wantSaid(s.reap(reap.ExitDone, short, "--wait").Report, decisions{"back": present, "gone": released, "leaves": suspected})
}

// What a run remembers for the next one holds for its own next look too.
func TestRunThatWaitedRefusesACensusThatShrank(t *testing.T) {
	s := newScene(t)
	s.crowd(4)
	s.leak("web-0")
	s.toReaper.After(proxy.First(1, ledgerWritten), func(context.Context, proxy.Request) proxy.Action {
		s.thin(4)
		return proxy.Pass()
	})
	refused := s.reap(reap.ExitLimit, short+"limits: {minEntries: 3, maxFraction: 1}\n", "--wait")
	s.wantSaid(refused.Report, decisions{"web-0": "orphan PodAbsent kept"})
	s.wantText(refused.Stderr, "1 pods were found, and 5 in the last run")
}

// Limits are those of a run, however often it looks; and what an earlier look released
// is in the report of one that was refused (promise 7).
func TestLimitsHoldForAllLooksOfARun(t *testing.T) {
	for limit, says := range map[string]string{
		"maxReleases: 1":                  "limits.maxReleases: the plan releases 2 of 2 allocations, allowed is 1",
		"maxFraction: 0.5, minEntries: 2": "limits.maxFraction: the plan releases 2 of 2 allocations, allowed is a fraction of 0.5",
	} {
		t.Run(limit, func(t *testing.T) {
			s := newScene(t)
			s.leak("soon")
			s.leak("late")
			policy := header + noCalico + "gracePeriod: 1s\nrules:\n- match: {pods: [soon]}\n  gracePeriod: 0s\nlimits: {" + limit + "}\n"
			refused := s.reap(reap.ExitLimit, policy, "--wait")
			s.wantSaid(refused.Report, decisions{"soon": released, "late": "orphan PodAbsent kept"})
			s.wantText(refused.Stderr, says+"; 1 were released before, and nothing since")
		})
	}
}

// SIGTERM ends a run that waits, at any moment: 130, a report that is true, nothing
// half done, and the lock is free (promises 7 and 8).
func TestRunThatIsToldToStopWaitingReports(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   proxy.Match // what is under way then
		web  string
	}{
		{"at the end of its first look", ledgerWritten, suspected},
		{"at the end of a look that released something", proxy.On("list configmaps"), released},
		{"while it sits there", proxy.On("update leases"), released}, // it renews its lease
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.leak("slow-0")
			s.leak("web-0")
			// The run asks for nothing before the hook knows it.
			gate := proxy.NewGate()
			s.toReaper.Before(proxy.First(1, proxy.Any), gate.Hook)
			p := s.start(short, "--wait")
			<-gate.Arrived()
			over := make(chan struct{})
			s.toReaper.Before(proxy.First(1, tt.at), func(ctx context.Context, _ proxy.Request) proxy.Action {
				if err := p.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
				select {
				case <-over:
				case <-ctx.Done():
				}
				return proxy.Drop()
			})
			gate.Open()
			report := p.EndT(s, reap.ExitSignal).Report
			close(over)
			s.wantSaid(report, decisions{"slow-0": suspected, "web-0": tt.web})
			if n := len(report.Entries); n != 2 {
				t.Errorf("%d entries in the report, want each once", n)
			}
			if holder := *s.lease().Spec.HolderIdentity; holder != "" {
				t.Errorf("%s still has the lock", holder)
			}
			left := decisions{"slow-0": suspected, "web-0": suspected}
			if tt.web == released {
				delete(left, "web-0")
			}
			s.wantSaid(s.reap(reap.ExitDone, patient).Report, left)
		})
	}
}
