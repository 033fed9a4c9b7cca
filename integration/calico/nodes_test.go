package calico_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/engine"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// at runs as if that much later, and checks what the report says of an address.
func (s *fixture) at(later time.Duration, address, want string) *reap.Report {
	s.Helper()
	report, err := s.engine(engine.After(later)).Run(s.Context(), releaseNow)
	s.must(err)
	if got := lines(report)[address]; got != want {
		s.Errorf("after %v, %s is %q, want %q", later, address, got, want)
	}
	return report
}

// A node was repaired, and its taint forgotten. The pod has an hour to end, and its kubelet, which is
// alive, gives it that (promise 1). Once the node is not ready, the taint counts.
func TestTaintOfAReadyNodeDoesNotEndItsPods(t *testing.T) {
	s := newFixture(t, calico.KubernetesT(t))
	sandbox, ip := s.leak("slow")
	s.pod("slow", append(sandbox.PodOptions(ip), func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(3600)) })...)
	_, err := s.Cluster.Kube.CoreV1().Nodes().Patch(s.Context(), node, types.StrategicMergePatchType,
		[]byte(`{"spec": {"taints": [{"key": "`+corev1.TaintNodeOutOfService+`", "value": "nodeshutdown", "effect": "NoExecute"}]}}`), metav1.PatchOptions{})
	s.must(err)
	s.at(0, ip.String(), "inUse PodPresent kept")
	s.must(s.Cluster.DeletePod(s.Context(), shop, "slow"))
	s.at(0, ip.String(), "suspected PodAbsent kept")
	warnings := strings.Join(s.at(30*time.Minute, ip.String(), "suspected PodAbsent kept").Warnings, "\n")
	if want := "not count on a ready node, but will as soon as the node is not ready, even if its pods still run: " + node + "."; !strings.Contains(warnings, want) {
		t.Errorf("the warnings %q do not have %q", warnings, want)
	}
	s.must(s.Cluster.SetNodeReady(s.Context(), node, false))
	s.at(30*time.Minute, ip.String(), "orphan PodAbsent released")
}
