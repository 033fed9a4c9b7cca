package run_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// describe is what kubectl describe prints of a pool.
func (f *fixture) describe(pool string) string {
	f.Helper()
	out, err := f.Kubectl(f.Context(), "", "-n", cluster.PoolNamespace, "describe", "ippools.whereabouts.cni.cncf.io", pool)
	if err != nil {
		f.Fatalf("kubectl describe: %v\n%s", err, out)
	}
	return out
}

// kubectl describe of a pool shows what was released from it, by which run and why.
func TestReleasesAreFoundByDescribe(t *testing.T) {
	f := newFixture(t)
	ip := f.leak("web-0")
	report := f.reap(reap.ExitDone, atOnce).Report
	f.wantText(f.describe("10.0.0.0-24"), fmt.Sprintf("%s of shop/web-0 (PodAbsent) released by run %s", ip, report.Run.ID))
	if len(report.Warnings) > 0 {
		t.Errorf("warnings %v", report.Warnings)
	}
}

// Events are a courtesy: one that cannot be written is a warning, and not a failure
// of what was done.
func TestRunThatMayNotTellDoesItsWork(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	f.toReaper.Before(proxy.On("create events"), proxy.Always(proxy.Forbidden()))
	report := f.reap(reap.ExitDone, atOnce).Report
	f.wantSaid(report, decisions{"web-0": released})
	f.wantText(strings.Join(report.Warnings, "\n"), "not every event was written: 1 of 1 events not written: "+
		"AddressReleased about IPPool 10.0.0.0-24 in namespace "+cluster.PoolNamespace+": injected: forbidden")
}

// A run that only plans, and one that refuses, write no event; a run that releases writes
// one for each address (promises 5 and 7).
func TestEventsAreOfWhatWasReleased(t *testing.T) {
	f := newFixture(t)
	for _, pod := range []string{"web-0", "web-1", "web-2"} {
		f.leak(pod)
	}
	wantEvents := func(want int) {
		t.Helper()
		list, err := f.Kube.EventsV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
		f.must(err)
		if len(list.Items) != want {
			t.Errorf("%d events, want %d", len(list.Items), want)
		}
	}
	f.reap(reap.ExitDone, atOnce, "--dry-run")
	f.reap(reap.ExitLimit, atOnce+"limits: {maxReleases: 1}\n")
	wantEvents(0)
	if got := f.reap(reap.ExitDone, atOnce).Report.Summary.Released; got != 3 {
		t.Errorf("%d were released, want 3", got)
	}
	wantEvents(3)
}
