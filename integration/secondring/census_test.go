package secondring_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// crowdNames are the first n of a crowd.
func crowdNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("crowd-%d", i)
	}
	return names
}

// crowd creates so many pods, beside the bystander.
func (s *scene) crowd(n int) {
	s.Helper()
	s.must(parallel.Each(16, crowdNames(n), func(_ int, name string) error {
		_, err := s.CreatePod(s.Context(), shop, name)
		return err
	}))
}

// thin deletes the first n of them.
func (s *scene) thin(n int) {
	s.Helper()
	s.must(parallel.Each(16, crowdNames(n), func(_ int, name string) error { return s.DeletePod(s.Context(), shop, name) }))
}

// A drop is a census that shrinks between two runs.
type drop struct {
	name          string
	before, after func(*scene)
	figures       string // of the message
	limits        string
}

var drops = []drop{
	{
		"pods", func(s *scene) { s.crowd(19) }, func(s *scene) { s.thin(11) },
		"limits.maxPodDrop: 9 pods were found, and 20 in the last run; believed is a drop by a fraction of 0.5", "",
	},
	{
		"pods, of few", func(s *scene) { s.crowd(4) }, func(s *scene) { s.thin(4) },
		"limits.maxPodDrop: 1 pods were found, and 5 in the last run; believed is a drop by a fraction of 0.7",
		"limits: {minEntries: 5, maxPodDrop: 0.7, maxFraction: 1}\n",
	},
	{
		"nodes", func(s *scene) { s.racks("a", "b", "c") }, func(s *scene) { s.noRacks("a", "b") },
		"limits.maxPodDrop: 1 nodes were found, and 3 in the last run; believed is a drop by a fraction of 0.5", "",
	},
}

// racks creates nodes.
func (s *scene) racks(names ...string) {
	s.Helper()
	for _, name := range names {
		s.must(s.CreateNode(s.Context(), name, true))
	}
}

// noRacks deletes nodes.
func (s *scene) noRacks(names ...string) {
	s.Helper()
	for _, name := range names {
		s.must(s.Kube.CoreV1().Nodes().Delete(s.Context(), name, metav1.DeleteOptions{}))
	}
}

// A list that lost half of what the last one had is not believed, however complete it
// says it is: with exit code 4 and both figures nothing is written, now and in the
// next runs, until an operator has looked (promises 2 and 9).
func TestCensusThatShrankIsRefusedUntilSomebodyHasLooked(t *testing.T) {
	for _, tt := range drops {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			tt.before(s)
			s.live("web-0")
			s.dies("web-0")
			s.wantSaid(s.reap(reap.ExitDone, patient+tt.limits).Report, decisions{"web-0": suspected})
			tt.after(s)
			before := s.versions()
			s.toReaper.Reset()
			for _, policy := range []string{patient, atOnce, atOnce} {
				want := decisions{"web-0": suspected}
				if policy == atOnce {
					want["web-0"] = "orphan PodAbsent kept"
				}
				for _, args := range [][]string{{}, {"--dry-run"}} {
					refused := s.reap(reap.ExitLimit, policy+tt.limits, args...)
					s.wantSaid(refused.Report, want)
					s.wantText(refused.Stderr, tt.figures+"; nothing was released")
					s.wantText(refused.Stderr, "hint: look at the plan; if it is right, raise limits.maxPodDrop or give --unsafe-ignore-limits")
				}
			}
			s.wantUnwritten(before)
			for request := range s.toReaper.Mutations() {
				if request != "update leases" {
					t.Errorf("a refused run asked for %s", request)
				}
			}

			ignored := s.reap(reap.ExitDone, atOnce+tt.limits, "--unsafe-ignore-limits")
			s.wantSaid(ignored.Report, decisions{"web-0": released})
			s.wantText(fmt.Sprint(ignored.Report.Warnings), "limits are ignored: "+tt.figures)
			s.leak("web-1")
			s.wantSaid(s.reap(reap.ExitDone, atOnce+tt.limits).Report, decisions{"web-1": released})
		})
	}
}

// Where nothing lost its owner, a drop is nothing that anybody has to look at; and
// the figures of such a run are those that the next one goes by.
func TestCensusMayShrinkWhereNothingIsOwnerless(t *testing.T) {
	s := newScene(t)
	s.crowd(20)
	s.live("web-0")
	s.reap(reap.ExitDone, atOnce)
	if got := s.ledger().Figures.Pods; got != 22 {
		t.Errorf("the ledger says %d pods, want 22", got)
	}
	s.thin(19)
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": present})
	if got := s.ledger().Figures.Pods; got != 3 {
		t.Errorf("the ledger says %d pods, want 3", got)
	}
	s.leak("web-1")
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": present, "web-1": released})
}

// Half of the pods may be gone: a drop has to be more.
func TestCensusMayLoseHalf(t *testing.T) {
	s := newScene(t)
	s.racks("a", "b", "c", "d")
	s.crowd(19)
	s.leak("web-0")
	s.reap(reap.ExitDone, patient)
	s.thin(10)
	s.noRacks("a", "b")
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": released})
}

// A cluster without a single pod is none that anything is released in, also by the
// first run.
func TestCensusOfNobodyIsRefused(t *testing.T) {
	s := newScene(t)
	s.leak("web-0")
	s.must(s.DeletePod(t.Context(), "default", "bystander"))
	before := s.versions()
	refused := s.reap(reap.ExitLimit, atOnce)
	s.wantSaid(refused.Report, decisions{"web-0": "orphan PodAbsent kept"})
	s.wantText(refused.Stderr, "a cluster without a single pod")
	s.wantUnwritten(before)
}
