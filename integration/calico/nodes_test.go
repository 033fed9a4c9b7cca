package calico_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

var deleteNow = metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}

// A pod that is gone is no sandbox that is: a node that says nothing may go on
// running it, and its address with it. Calico releases regardless.
func TestNodesThatSayNothing(t *testing.T) {
	const held, gone = "held NodeUnreachable kept", "orphan PodAbsent released"
	on := func(node string) func(*fixture, string) []string {
		return func(s *fixture, pod string) []string {
			return texts(s.add(calico.NewSandbox(shop, pod, node)))
		}
	}
	each(t, func(s *fixture) {
		// Calico's name for the last one differs where it has names of its own
		// (12, 13).
		for _, name := range []string{"ready", "silent", "off", "gone"} {
			s.must(s.CreateNode(s.Context(), name))
		}
		other := "gone"
		if s.Etcd != nil {
			other = "calicos-name"
			s.must(s.Cluster.CreateNode(s.Context(), "kubernetes-name", true))
			s.must(s.ApplyNode(s.Context(), other, "kubernetes-name"))
			s.must(s.Cluster.SetNodeReady(s.Context(), "kubernetes-name", false))
			s.must(s.ApplyNode(s.Context(), "no-node", "")) // of no orchestrator
		}
		rows := []row{
			{name: "ready", set: on("ready"), want: gone},
			{name: "silent", set: on("silent"), want: held, told: gone},
			{name: "out of service", set: on("off"), want: gone},
			{name: "gone", set: on("gone"), want: gone},
			{name: "pod of a silent node", want: "inUse PodPresent kept", set: func(s *fixture, pod string) []string {
				ip := on("silent")(s, pod)
				s.pod(pod, cluster.OnNode("silent"))
				return ip
			}},
		}
		if s.Etcd != nil {
			rows = append(rows,
				row{name: "silent, under another name", set: on(other), want: held, told: gone},
				row{name: "of no orchestrator", set: on("no-node"), want: gone},
			)
		}
		all := s.plant(rows)
		for _, name := range []string{"silent", "off"} {
			s.must(s.Cluster.SetNodeReady(s.Context(), name, false))
		}
		s.fence("off")
		s.must(s.Cluster.Kube.CoreV1().Nodes().Delete(s.Context(), "gone", deleteNow))
		s.prove(releaseNow, all, func(r row) string { return r.want })
		s.prove(releaseNow+"nodes: {unreachable: release}\n", all, secondRun)
	})
}
