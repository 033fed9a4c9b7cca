package run_test

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A run stalls in its second look, as on a laptop that sleeps. Meanwhile another run releases what it has
// planned, and a person puts an address back, since its container still runs although its pod is gone. Its entry
// has the same bytes then. The run goes on, and the address stays (promises 1 and 7): without the lock, because
// the ledger is not its own any more, and with it, because others may have the lock by now.
//
// A lock lapses after half a minute, so that only make exhaustive runs with it.
func TestEveryRunThatStallsReleasesNothingThatWasPutBack(t *testing.T) {
	type row struct {
		name    string
		locked  bool
		code    int
		outcome string
		why     string
	}
	for _, tt := range kit.SampleBy([]row{
		{"without the lock", false, reap.ExitDone, "kept", "a restore put it back at "},
		{"with the lock", true, reap.ExitPartial, "notBegun", "the lock was "},
	}, func(row) bool { return true }) {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.leak("web-0")
			before := f.owners()
			if !tt.locked {
				f.toReaper.Before(proxy.On("get leases"), proxy.Always(proxy.Forbidden()))
			}
			gate := proxy.NewGate()
			f.toReaper.Before(proxy.First(1, proxy.On("get pods")), gate.Hook)
			stalled := f.start(atOnce)
			<-gate.Arrived()
			f.must(stalled.Signal(syscall.SIGSTOP))

			f.toReaper, f.kubeconfig = f.proxy()
			other := f.reapOnceUnlocked(atOnce)
			f.wantSaid(other, decisions{"web-0": released})
			f.putBack(other.Run.ID)
			f.wantOwners("put back", before)

			f.must(stalled.Signal(syscall.SIGCONT))
			gate.Open()
			report := stalled.EndT(t, tt.code).Report
			f.wantSaid(report, decisions{"web-0": "orphan PodAbsent " + tt.outcome})
			f.wantText(report.Entries[0].Error, tt.why)
			f.wantOwners("after the stalled run", before)
			// What the stalled run saved did not lose the hold.
			f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": "held Restored kept"})
		})
	}
}

// reapOnceUnlocked runs the reaper as soon as it gets the lock, and returns its report.
func (f *fixture) reapOnceUnlocked(policy string) *reap.Report {
	f.Helper()
	for {
		result, err := f.start(policy).Wait()
		f.must(err)
		if result.ExitCode == reap.ExitLocked {
			continue
		}
		if result.ExitCode != reap.ExitDone {
			f.Fatalf("exit code %d\n%s", result.ExitCode, result.Stderr)
		}
		return result.Report
	}
}

// putBack restores all that a run has released, as an administrator does.
func (f *fixture) putBack(run string) {
	f.Helper()
	r, err := reap.New()
	f.must(err)
	result, err := r.Run(f.Context(), "restore", "--run="+run, "--dry-run=false",
		"--kubeconfig="+f.Kubeconfig, "--context="+cluster.ContextName, "--state-namespace="+home)
	f.must(err)
	if result.ExitCode != reap.ExitDone {
		f.Fatalf("restore: exit code %d\n%s", result.ExitCode, result.Stderr)
	}
}

// wantOwners compares who has Whereabouts' addresses.
func (f *fixture) wantOwners(when string, want map[string]string) {
	f.Helper()
	if diff := cmp.Diff(want, f.owners()); diff != "" {
		f.Errorf("owners %s (-want +got):\n%s", when, diff)
	}
}
