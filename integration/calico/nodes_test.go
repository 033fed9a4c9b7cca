package calico_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

var deleteNow = metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}

// If a pod is gone, its sandbox need not be: an unreachable node may go on running it, with its
// address. Calico releases it regardless.
func TestNodesThatSayNothing(t *testing.T) {
	const held, gone = "held NodeUnreachable kept", "orphan PodAbsent released"
	on := func(node string) func(*fixture, string) []string {
		return func(s *fixture, pod string) []string {
			return texts(s.add(calico.NewSandbox(shop, pod, node)))
		}
	}
	s := newFixture(t, calico.EtcdT(t))
	for _, name := range []string{"ready", "silent", "off", "gone"} {
		s.must(s.CreateNode(s.Context(), name))
	}
	// In etcd, Calico may have its own names for nodes.
	s.must(s.Cluster.CreateNode(s.Context(), "kubernetes-name", true))
	s.must(s.ApplyNode(s.Context(), "calicos-name", "kubernetes-name"))
	s.must(s.ApplyNode(s.Context(), "no-node", "")) // of no orchestrator
	rows := s.plant([]row{
		{name: "ready", set: on("ready"), want: gone},
		{name: "silent", set: on("silent"), want: held},
		{name: "out of service", set: on("off"), want: gone},
		{name: "gone", set: on("gone"), want: gone},
		{name: "pod of a silent node", want: "inUse PodPresent kept", set: func(s *fixture, pod string) []string {
			ip := on("silent")(s, pod)
			s.pod(pod, cluster.OnNode("silent"))
			return ip
		}},
		{name: "silent, under another name", set: on("calicos-name"), want: held},
		{name: "of no orchestrator", set: on("no-node"), want: gone},
	})
	for _, name := range []string{"silent", "off", "kubernetes-name"} {
		s.must(s.Cluster.SetNodeReady(s.Context(), name, false))
	}
	s.fence("off")
	s.must(s.Cluster.Kube.CoreV1().Nodes().Delete(s.Context(), "gone", deleteNow))
	s.prove(rows)
}

// fence taints a node like an operator who knows that it is off.
func (s *fixture) fence(name string) {
	s.Helper()
	node, err := s.Cluster.Kube.CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{})
	s.must(err)
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	_, err = s.Cluster.Kube.CoreV1().Nodes().Update(s.Context(), node, metav1.UpdateOptions{})
	s.must(err)
}
