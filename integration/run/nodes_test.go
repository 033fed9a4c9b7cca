package run_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

const unreachable = "held NodeUnreachable kept"

// nodes are those of the tests below, by the names of their pods.
var nodes = []string{"silent", "ready", "off", "removed", "unseen"}

// createNodesWithPods puts a pod with an address on each node; on the last, the pod comes and goes
// between two runs, and only its address is there to be seen.
func (f *fixture) createNodesWithPods() {
	f.Helper()
	for _, node := range nodes {
		f.must(f.CreateNode(f.Context(), "on-"+node, true))
		if node == "unseen" {
			f.leak(node)
			continue
		}
		f.live(node, cluster.OnNode("on-"+node))
	}
}

// loseNodes takes the nodes down, and force-deletes their pods: what an operator does
// who has lost a rack.
func (f *fixture) loseNodes() {
	f.Helper()
	for _, node := range []string{"silent", "off", "removed", "unseen"} {
		f.must(f.SetNodeReady(f.Context(), "on-"+node, false))
	}
	f.taint("on-off")
	f.must(f.Kube.CoreV1().Nodes().Delete(f.Context(), "on-removed", metav1.DeleteOptions{}))
	for _, node := range nodes {
		f.dies(node)
	}
}

// taint vouches that nothing runs on the node any more.
func (f *fixture) taint(name string) {
	f.Helper()
	node, err := f.Kube.CoreV1().Nodes().Get(f.Context(), name, metav1.GetOptions{})
	f.must(err)
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
		Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute,
	})
	_, err = f.Kube.CoreV1().Nodes().Update(f.Context(), node, metav1.UpdateOptions{})
	f.must(err)
}

// Whereabouts does not say on which node an address is. The ledger remembers where
// its pod was: a pod that is gone from there is no sandbox that is, as long as the
// node is there and says nothing. Of a pod that no run has seen nothing is known, and
// nothing is held.
func TestAddressOnANodeThatSaysNothingIsHeld(t *testing.T) {
	f := newFixture(t)
	f.network = wide
	f.createNodesWithPods()
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{
		"silent": present, "ready": present, "off": present, "removed": present, "unseen": suspected,
	})
	f.loseNodes()
	report := f.reap(reap.ExitDone, atOnce).Report
	f.wantSaid(report, decisions{
		"silent": unreachable, "ready": released, "off": released, "removed": released, "unseen": unreachable,
	})
	for _, e := range report.Entries {
		if want := "on-" + e.Owner.Pod; e.Owner.Pod != "unseen" && e.Owner.Node != want {
			t.Errorf("%s is said to be on %q, want %q", e.Owner.Pod, e.Owner.Node, want)
		}
	}
	// It is remembered for as long as it is held.
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"silent": unreachable, "unseen": unreachable})
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"silent": unreachable, "unseen": unreachable})
	f.must(f.SetNodeReady(t.Context(), "on-silent", true))
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{"silent": suspected, "unseen": unreachable})
	f.must(f.SetNodeReady(t.Context(), "on-silent", false))
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"silent": unreachable, "unseen": unreachable})
	f.taint("on-silent")
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"silent": released, "unseen": unreachable})
}
