package run_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// short is a policy whose grace period a test can sit out, but for the pods of a
// rule.
const short = header + noCalico + "gracePeriod: 1s\nrules:\n- match: {pods: [\"slow-*\"]}\n  gracePeriod: 1h\n"

// ledgerWritten selects the first writing of the ledger, which ends a look that
// releases nothing.
func ledgerWritten(r proxy.Request) bool {
	return r.String() == "create configmaps" && strings.Contains(string(r.Body), memory.LedgerName)
}

// journalsListed selects the listing of the journals, which ends a look that released
// something. A run also lists ConfigMaps before its first look, of all namespaces.
func journalsListed(r proxy.Request) bool {
	return r.String() == "list configmaps" && r.Namespace == home
}

// One run sits out the grace period and releases.
func TestRunWaitsForTheEndOfTheGracePeriod(t *testing.T) {
	f := newFixture(t)
	f.live("web-0")
	f.leak("web-1")
	report := f.reap(reap.ExitDone, short, "--wait").Report
	f.wantSaid(report, decisions{"web-0": present, "web-1": released})
	if took := report.Run.FinishedAt.Sub(report.Run.StartedAt); took < time.Second {
		t.Errorf("the run took %v, which is less than the grace period", took)
	}
	if pools := report.Pools; len(pools) != 1 || pools[0].AllocatedBefore != 2 || pools[0].AllocatedAfter != 1 {
		t.Errorf("pools %+v, want one that had 2 and has 1", pools)
	}
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": present})
}

// By flags, an outage Job replaces the policy's own terms. It keeps the rules, and does not
// wait for the hour of one of them.
func TestFlagsReplaceTheTermsOfThePolicyAndKeepItsRules(t *testing.T) {
	f := newFixture(t)
	f.live("web-0")
	for _, pod := range []string{"web-1", "held-0", "slow-0"} {
		f.leak(pod)
	}
	policy := strings.Replace(short, "gracePeriod: 1s\nrules:\n", "gracePeriod: 24h\nrules:\n- match: {pods: [\"held-*\"]}\n  hold: true\n", 1)
	policy = strings.Replace(strings.Replace(policy, "dryRun: false", "dryRun: true", 1), "minAge: 0s", "minAge: 24h", 1)
	report := f.reap(reap.ExitDone, policy, "--dry-run=false", "--grace-period=1s", "--min-age=0s", "--wait=1m").Report
	f.wantSaid(report, decisions{"web-0": present, "web-1": released, "held-0": "held RuleHold kept", "slow-0": suspected})
}

// Limits are those of a run, however often it looks; and what an earlier look released
// is in the report of one that was refused (promise 7).
func TestLimitsHoldForAllLooksOfARun(t *testing.T) {
	for limit, says := range map[string]string{
		"maxReleases: 1":                  "limits.maxReleases: the plan releases 2 of 2 allocations, allowed is 1",
		"maxFraction: 0.5, minEntries: 2": "limits.maxFraction: the plan releases 2 of 2 allocations, allowed is a fraction of 0.5",
	} {
		t.Run(limit, func(t *testing.T) {
			f := newFixture(t)
			f.leak("soon")
			f.leak("late")
			policy := header + noCalico + "gracePeriod: 1s\nrules:\n- match: {pods: [soon]}\n  gracePeriod: 0s\nlimits: {" + limit + "}\n"
			result := f.reap(reap.ExitLimit, policy, "--wait")
			f.wantSaid(result.Report, decisions{"soon": released, "late": refused})
			f.wantText(result.Stderr, says+"; 1 were released before, and nothing since")
		})
	}
}

// SIGTERM ends a run that waits, at any moment: 130, a report that is true, nothing
// half done, and the lock is free (promises 7 and 8).
func TestEveryMomentAWaitingRunIsStopped(t *testing.T) {
	moments := []struct {
		name string
		at   proxy.Match // the request that is under way then
		web  string
	}{
		{"at the end of its first look", ledgerWritten, suspected},
		{"at the end of a look that released something", journalsListed, released},
		{"while it waits", proxy.On("update leases"), released}, // it renews its lease, after ten seconds
	}
	if testing.Short() {
		moments = moments[:2]
	}
	for _, tt := range moments {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.leak("slow-0")
			f.leak("web-0")
			// The run asks for nothing before the hook knows it.
			gate := proxy.NewGate()
			f.toReaper.Before(proxy.First(1, proxy.Any), gate.Hook)
			p := f.start(short, "--wait")
			<-gate.Arrived()
			over := make(chan struct{})
			f.toReaper.Before(proxy.First(1, tt.at), func(ctx context.Context, _ proxy.Request) proxy.Action {
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
			report := p.EndT(f, reap.ExitSignal).Report
			close(over)
			f.wantSaid(report, decisions{"slow-0": suspected, "web-0": tt.web})
			if n := len(report.Entries); n != 2 {
				t.Errorf("%d entries in the report, want each once", n)
			}
			if holder := *f.lease().Spec.HolderIdentity; holder != "" {
				t.Errorf("%s still has the lock", holder)
			}
			left := decisions{"slow-0": suspected, "web-0": suspected}
			if tt.web == released {
				delete(left, "web-0")
			}
			f.wantSaid(f.reap(reap.ExitDone, patient).Report, left)
		})
	}
}
