package secondring_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

const (
	present     = "inUse PodPresent kept"
	unreachable = "held NodeUnreachable kept"
)

// nodes are those of the scenes below, by the names of their pods.
var nodes = []string{"silent", "ready", "off", "removed", "unseen"}

// plant puts a pod with an address on each node; on the last, the pod comes and goes
// between two runs, and only its address is there to be seen.
func (s *scene) plant() {
	s.Helper()
	for _, node := range nodes {
		s.must(s.CreateNode(s.Context(), "on-"+node, true))
		if node == "unseen" {
			s.leak(node)
			continue
		}
		s.live(node, cluster.OnNode("on-"+node))
	}
}

// strike takes the nodes down, and force-deletes their pods: what an operator does
// who has lost a rack.
func (s *scene) strike() {
	s.Helper()
	for _, node := range []string{"silent", "off", "removed", "unseen"} {
		s.must(s.SetNodeReady(s.Context(), "on-"+node, false))
	}
	s.taint("on-off")
	s.must(s.Kube.CoreV1().Nodes().Delete(s.Context(), "on-removed", metav1.DeleteOptions{}))
	for _, node := range nodes {
		s.dies(node)
	}
}

// taint vouches that nothing runs on the node any more.
func (s *scene) taint(name string) {
	s.Helper()
	node, err := s.Kube.CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{})
	s.must(err)
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
		Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute,
	})
	_, err = s.Kube.CoreV1().Nodes().Update(s.Context(), node, metav1.UpdateOptions{})
	s.must(err)
}

// Whereabouts does not say on which node an address is. The ledger remembers where
// its pod was: a pod that is gone from there is no sandbox that is, as long as the
// node is there and says nothing. Of a pod that no run has seen nothing is known, and
// nothing is held.
func TestAddressOnANodeThatSaysNothingIsHeld(t *testing.T) {
	s := newScene(t)
	s.network = wide
	s.plant()
	s.wantSaid(s.reap(reap.ExitDone, patient).Report, decisions{
		"silent": present, "ready": present, "off": present, "removed": present, "unseen": suspected,
	})
	s.strike()
	report := s.reap(reap.ExitDone, atOnce).Report
	s.wantSaid(report, decisions{
		"silent": unreachable, "ready": released, "off": released, "removed": released, "unseen": released,
	})
	for _, e := range report.Entries {
		if want := "on-" + e.Owner.Pod; e.Owner.Pod != "unseen" && e.Owner.Node != want {
			t.Errorf("%s is said to be on %q, want %q", e.Owner.Pod, e.Owner.Node, want)
		}
	}
	// It is remembered for as long as it is held.
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{"silent": unreachable})
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{"silent": unreachable})
	s.must(s.SetNodeReady(t.Context(), "on-silent", true))
	s.wantSaid(s.reap(reap.ExitDone, patient).Report, decisions{"silent": suspected})
	s.must(s.SetNodeReady(t.Context(), "on-silent", false))
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{"silent": unreachable})
	s.taint("on-silent")
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{"silent": released})
}

func TestAddressOnANodeThatSaysNothingGoesWhereThePolicySaysSo(t *testing.T) {
	s := newScene(t)
	s.plant()
	s.reap(reap.ExitDone, patient)
	s.strike()
	s.wantSaid(s.reap(reap.ExitDone, atOnce+"nodes: {unreachable: release}\n").Report, decisions{
		"silent": released, "ready": released, "off": released, "removed": released, "unseen": released,
	})
}

// A ledger that is gone remembers no node: what it held is ordinary from then on, as
// docs/design.md says.
func TestWithoutALedgerNoNodeIsKnown(t *testing.T) {
	s := newScene(t)
	s.plant()
	s.reap(reap.ExitDone, patient)
	s.strike()
	s.forget()
	s.wantSaid(s.reap(reap.ExitDone, patient).Report, decisions{
		"silent": suspected, "ready": suspected, "off": suspected, "removed": suspected, "unseen": suspected,
	})
}

// Where a pod was is remembered by its entry and its name, not by its sandbox: one
// that was evicted and came back elsewhere under its name takes its address along.
func TestNodeIsThatOnWhichThePodWasSeenLast(t *testing.T) {
	s := newScene(t)
	for _, node := range []string{"first", "second"} {
		s.must(s.CreateNode(t.Context(), node, true))
	}
	shows := cluster.Networks(cluster.Attached("shop/net", "net1", s.leak("web-0")))
	s.pod("web-0", cluster.OnNode("first"), shows)
	s.reap(reap.ExitDone, patient)
	s.dies("web-0")
	s.again("web-0", "next") // adopts the entry
	s.pod("web-0", cluster.OnNode("second"), shows)
	s.wantSaid(s.reap(reap.ExitDone, patient).Report, decisions{"web-0": present})
	s.must(s.SetNodeReady(t.Context(), "first", false))
	s.dies("web-0")
	s.wantSaid(s.reap(reap.ExitDone, patient).Report, decisions{"web-0": suspected})
	s.must(s.SetNodeReady(t.Context(), "second", false))
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": unreachable})
}
