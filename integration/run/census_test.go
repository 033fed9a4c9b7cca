package run_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// names are those of n pods.
func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("extra-%d", i)
	}
	return names
}

// addPods creates so many pods, beside the bystander.
func (f *fixture) addPods(n int) {
	f.Helper()
	f.must(parallel.Each(16, names(n), func(_ int, name string) error {
		_, err := f.CreatePod(f.Context(), shop, name)
		return err
	}))
}

// deletePods deletes the first n of them.
func (f *fixture) deletePods(n int) {
	f.Helper()
	f.must(parallel.Each(16, names(n), func(_ int, name string) error { return f.DeletePod(f.Context(), shop, name) }))
}

// A drop is a census that shrinks between two runs.
type drop struct {
	name          string
	before, after func(*fixture)
	figures       string // of the message
	limits        string
}

var drops = []drop{
	{
		"pods", func(f *fixture) { f.addPods(19) }, func(f *fixture) { f.deletePods(11) },
		"limits.maxPodDrop: the cluster has 9 unfinished pods, in the last run it had 20; allowed is a drop by a fraction of 0.5", "",
	},
	{
		"pods, of few", func(f *fixture) { f.addPods(4) }, func(f *fixture) { f.deletePods(4) },
		"limits.maxPodDrop: the cluster has 1 unfinished pods, in the last run it had 5; allowed is a drop by a fraction of 0.7",
		"limits: {minEntries: 5, maxPodDrop: 0.7, maxFraction: 1}\n",
	},
	{
		"nodes", func(f *fixture) { f.addNodes("a", "b", "c") }, func(f *fixture) { f.deleteNodes("a", "b") },
		"limits.maxPodDrop: the cluster has 1 nodes, in the last run it had 3; allowed is a drop by a fraction of 0.5", "",
	},
}

// addNodes creates nodes.
func (f *fixture) addNodes(names ...string) {
	f.Helper()
	for _, name := range names {
		f.must(f.CreateNode(f.Context(), name, true))
	}
}

// deleteNodes deletes nodes.
func (f *fixture) deleteNodes(names ...string) {
	f.Helper()
	for _, name := range names {
		f.must(f.Kube.CoreV1().Nodes().Delete(f.Context(), name, metav1.DeleteOptions{}))
	}
}

// A run does not believe a list that lost half of what the last one had, also if the list
// says that it is complete. It ends with exit code 4, tells both figures and writes
// nothing but that, and so do the next runs within a grace period, until an operator
// raises the limit (promises 2 and 9).
func TestEveryDropOfTheCensus(t *testing.T) {
	for _, tt := range kit.SampleBy(drops, func(d drop) bool { return d.name == "nodes" }) {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			tt.before(f)
			f.live("web-0")
			f.dies("web-0")
			f.wantSaid(f.reap(reap.ExitDone, patient+tt.limits).Report, decisions{"web-0": suspected})
			tt.after(f)
			before := f.versions()
			f.toReaper.Reset()
			for i, policy := range []string{patient, atOnce, atOnce} {
				want := decisions{"web-0": suspected}
				if policy == atOnce {
					want["web-0"] = refused
				}
				modes := [][]string{{}, {"--dry-run"}}
				if testing.Short() && i < 2 {
					modes = modes[:1]
				}
				for _, args := range modes {
					result := f.reap(reap.ExitLimit, policy+tt.limits, args...)
					f.wantSaid(result.Report, want)
					f.wantText(result.Stderr, tt.figures+"; nothing was released")
					f.wantText(result.Stderr, "hint: look whether the API server is the right one and lists everything; ")
				}
			}
			// Only that the list is doubtful is remembered.
			after := f.versions()
			delete(before, ledgerVersion)
			delete(after, ledgerVersion)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("versions (-before +after):\n%s", diff)
			}
			for request := range f.toReaper.Mutations() {
				if request != "update leases" && request != "update configmaps" {
					t.Errorf("a refused run asked for %s", request)
				}
			}

			ignored := f.reap(reap.ExitDone, atOnce+tt.limits, "--unsafe-ignore-limits")
			f.wantSaid(ignored.Report, decisions{"web-0": released})
			f.wantText(fmt.Sprint(ignored.Report.Warnings), "limits are ignored: "+tt.figures)
			f.leak("web-1")
			f.wantSaid(f.reap(reap.ExitDone, atOnce+tt.limits).Report, decisions{"web-1": released})
		})
	}
}

// ledgerVersion is the ledger's place among the versions of all objects.
const ledgerVersion = "configmaps/ip-reaper/ip-reaper-ledger"

// A nightly scale-down is no reason to refuse for days: a second list that says the same,
// a grace period later, is believed.
func TestDropIsBelievedByTheSecondListThatSaysSo(t *testing.T) {
	f := newFixture(t)
	f.addPods(19)
	f.live("web-0")
	f.dies("web-0")
	f.reap(reap.ExitDone, patient)
	f.deletePods(11)
	for range 2 {
		f.wantSaid(f.reap(reap.ExitLimit, patient).Report, decisions{"web-0": suspected})
	}
	f.pass(time.Hour)
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{"web-0": released})
}

// A nightly job farm leaves many finished pods, and the garbage collector removes them all.
// That is no drop.
func TestFinishedPodsMayGoAllAtOnce(t *testing.T) {
	f := newFixture(t)
	f.must(parallel.Each(16, names(60), func(_ int, name string) error {
		_, err := f.CreatePod(f.Context(), shop, name, cluster.Phase(corev1.PodSucceeded))
		return err
	}))
	f.live("web-0")
	f.dies("web-0")
	f.reap(reap.ExitDone, patient)
	if got := f.ledger().Figures.Pods; got != 1 {
		t.Errorf("the ledger says %d pods, want 1", got)
	}
	f.deletePods(60)
	f.pass(time.Hour)
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{"web-0": released})
}

// If nothing has lost its owner, a drop is accepted, and the next run compares with the
// figures of this one.
func TestCensusMayShrinkWhereNothingIsOwnerless(t *testing.T) {
	f := newFixture(t)
	f.addPods(20)
	f.live("web-0")
	f.reap(reap.ExitDone, atOnce)
	if got := f.ledger().Figures.Pods; got != 22 {
		t.Errorf("the ledger says %d pods, want 22", got)
	}
	f.deletePods(19)
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": present})
	if got := f.ledger().Figures.Pods; got != 3 {
		t.Errorf("the ledger says %d pods, want 3", got)
	}
	f.leak("web-1")
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": present, "web-1": released})
}

// Half of the pods may be gone: a drop has to be more.
func TestCensusMayLoseHalf(t *testing.T) {
	f := newFixture(t)
	f.addNodes("a", "b", "c", "d")
	f.addPods(19)
	f.leak("web-0")
	f.reap(reap.ExitDone, patient)
	f.deletePods(10)
	f.deleteNodes("a", "b")
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": released})
}
