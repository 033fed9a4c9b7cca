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
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// at runs as if that much later, and checks what the report says of an address.
func (s *fixture) at(later time.Duration, address, want string) *reap.Report {
	s.Helper()
	report, err := s.engine(reap.After(later)).Run(s.Context(), releaseNow)
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

// Calico's blocks have a name of the node that Kubernetes does not have. The node is cut off, and its
// pod is deleted by force. What the node says of its names keeps the address (promise 1).
func TestNodeHasOtherNames(t *testing.T) {
	for name, say := range map[string]func(*corev1.Node){
		"its label": func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = "w-1.corp.example" },
		"an address": func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalDNS, Address: "W-1.corp.example"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, calico.KubernetesT(t))
			nodes := s.Cluster.Kube.CoreV1().Nodes()
			s.must(s.CreateNode(s.Context(), "w-1.corp.example")) // for the plugin
			ip := s.add(calico.NewSandbox(shop, "web", "w-1.corp.example"))[0].String()
			s.must(nodes.Delete(s.Context(), "w-1.corp.example", metav1.DeleteOptions{}))
			s.must(s.CreateNode(s.Context(), "machine-7"))
			n, err := nodes.Get(s.Context(), "machine-7", metav1.GetOptions{})
			s.must(err)
			n.Labels = map[string]string{}
			say(n)
			n, err = nodes.Update(s.Context(), n, metav1.UpdateOptions{})
			s.must(err)
			say(n)
			_, err = nodes.UpdateStatus(s.Context(), n, metav1.UpdateOptions{})
			s.must(err)
			s.must(s.Cluster.SetNodeReady(s.Context(), "machine-7", false))
			s.at(0, ip, "held NodeUnreachable kept")
			s.must(s.Cluster.SetNodeReady(s.Context(), "machine-7", true))
			s.at(0, ip, "orphan PodAbsent released")
		})
	}
}

// The mirror of a static pod is deleted and does not come back. Its kubelet goes on running the
// sandbox until the node is started anew (promise 1).
func TestStaticPodWithoutItsMirrorKeepsItsAddress(t *testing.T) {
	s := newFixture(t, calico.KubernetesT(t))
	boot := func(id string) {
		s.Helper()
		_, err := s.Cluster.Kube.CoreV1().Nodes().Patch(s.Context(), node, types.StrategicMergePatchType,
			[]byte(`{"status": {"nodeInfo": {"bootID": "`+id+`"}}}`), metav1.PatchOptions{}, "status")
		s.must(err)
	}
	const name = "web-" + node
	sandbox, ip := s.leak(name)
	boot("boot-1")
	s.pod(name, append(sandbox.PodOptions(ip), cluster.Annotation(corev1.MirrorPodAnnotationKey, "hash"))...)
	s.at(0, ip.String(), "inUse PodPresent kept")
	s.must(s.Cluster.DeletePod(s.Context(), shop, name))
	for _, later := range []time.Duration{0, time.Hour, 24 * time.Hour} {
		s.at(later, ip.String(), "held StaticPod kept")
	}
	boot("boot-2")
	s.at(24*time.Hour, ip.String(), "suspected PodAbsent kept")
	s.at(25*time.Hour, ip.String(), "orphan PodAbsent released")
}

// A pod is made again under its name on the network of its node. Calico's plugin is never called for it,
// so the address that the earlier pod had goes.
func TestPodOnTheHostsNetworkHasNoAddress(t *testing.T) {
	s := newFixture(t, calico.KubernetesT(t))
	_, ip := s.leak("web")
	s.pod("web", func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	s.at(0, ip.String(), "suspected PodReplaced kept")
	s.at(time.Hour, ip.String(), "orphan PodReplaced released")
}
