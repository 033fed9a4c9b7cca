package run_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// short is a policy whose grace period a test can wait for, except for the pods of a rule.
const short = header + noCalico + "gracePeriod: 1s\nrules:\n- match: {pods: [\"slow-*\"]}\n  gracePeriod: 1h\n"

// journalsListed selects the listing of the journals, which ends a round that released something.
// Before its first round, a run also lists the ConfigMaps of all namespaces.
func journalsListed(r proxy.Request) bool {
	return r.String() == "list configmaps" && r.Namespace == home
}

// SIGTERM ends a waiting run, here after it has released something: exit code 130, a true report,
// nothing half done, and the lock is free (promises 7 and 8).
func TestWaitingRunIsStopped(t *testing.T) {
	f := newFixture(t)
	f.leak("slow-0")
	f.leak("web-0")
	// The run makes no request before the hook knows its process.
	gate := proxy.NewGate()
	f.toReaper.Before(proxy.First(1, proxy.Any), gate.Hook)
	p := f.start(short, "--wait")
	<-gate.Arrived()
	over := make(chan struct{})
	f.toReaper.Before(proxy.First(1, journalsListed), func(ctx context.Context, _ proxy.Request) proxy.Action {
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
	f.wantSaid(report, decisions{"slow-0": suspected, "web-0": released})
	if n := len(report.Entries); n != 2 {
		t.Errorf("%d entries in the report, want each once", n)
	}
	if holder := *f.lease().Spec.HolderIdentity; holder != "" {
		t.Errorf("%s still has the lock", holder)
	}
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{"slow-0": suspected})
}
