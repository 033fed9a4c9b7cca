package calico_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

// If a pod is gone, its sandbox need not be: an unreachable node may go on running it, with its
// address. Calico releases it regardless. The engine's tests cover the other states of a node.
func TestNodesThatSayNothing(t *testing.T) {
	const held, gone = "held NodeUnreachable kept", "orphan PodAbsent released"
	on := func(node string) func(*fixture, string) []string {
		return func(s *fixture, pod string) []string {
			return texts(s.add(calico.NewSandbox(shop, pod, node)))
		}
	}
	s := newFixture(t, calico.EtcdT(t))
	s.must(s.CreateNode(s.Context(), "silent"))
	// In etcd, Calico may have its own names for nodes.
	s.must(s.Cluster.CreateNode(s.Context(), "kubernetes-name", true))
	s.must(s.ApplyNode(s.Context(), "calicos-name", "kubernetes-name"))
	s.must(s.ApplyNode(s.Context(), "no-node", "")) // of no orchestrator
	rows := s.plant([]row{
		{name: "silent", set: on("silent"), want: held},
		{name: "silent, under another name", set: on("calicos-name"), want: held},
		{name: "of no orchestrator", set: on("no-node"), want: gone},
	})
	for _, name := range []string{"silent", "kubernetes-name"} {
		s.must(s.Cluster.SetNodeReady(s.Context(), name, false))
	}
	s.prove(rows)
}
