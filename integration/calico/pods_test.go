package calico_test

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

type options = []cluster.PodOption

// dual makes the plugin give a sandbox an address of each family.
func (s *fixture) dual(pod string) (calico.Sandbox, []netip.Addr) {
	s.Helper()
	sandbox := calico.NewSandbox(shop, pod, node)
	sandbox.IPv4, sandbox.IPv6 = true, true
	return sandbox, s.add(sandbox)
}

// Who has an address, as Calico's plugin and the API server store it. Missing any of these would
// release a live address (promise 1). The engine's tests cover the rules themselves.
func TestPodsHaveTheirAddresses(t *testing.T) {
	const (
		inUse, gone = "inUse PodPresent kept", "orphan PodAbsent released"
		byAnother   = "inUse AddressInUse kept"
		finished    = "held PodFinished kept"
	)
	other := cluster.PodIPs("10.99.0.1")
	s := newFixture(t, calico.KubernetesT(t))
	s.prove(s.plant([]row{
		{name: "its pod is gone", set: leaks, want: gone},
		{name: "its pod is gone, and it had both families", want: gone, set: func(s *fixture, pod string) []string {
			_, ips := s.dual(pod)
			return texts(ips)
		}},
		{name: "its pod shows it", want: inUse, set: func(s *fixture, pod string) []string {
			_, ip := s.live(pod)
			return []string{ip.String()}
		}},
		{name: "its pod shows it in Calico's annotation and another in the status", want: inUse, set: shown(func(_ calico.Sandbox, ip netip.Addr) options {
			return options{other, cluster.Annotation(calico.PodIPsAnnotation, "fd99::2/128,"+ip.String()+"/32")}
		})},
		{name: "its pod shows the sandbox and another address", want: inUse, set: shown(func(sandbox calico.Sandbox, _ netip.Addr) options {
			return options{other, cluster.Annotation(calico.ContainerIDAnnotation, sandbox.ContainerID)}
		})},
		{name: "its pod shows nothing yet", want: inUse, set: shown(func(calico.Sandbox, netip.Addr) options {
			return options{cluster.Phase(corev1.PodPending)}
		})},
		{name: "another pod shows it by Multus", want: byAnother, set: func(s *fixture, pod string) []string {
			_, ip := s.leak(pod)
			s.pod(pod+"-other", cluster.Networks(cluster.Attached("shop/net", "net1", ip.String())))
			return []string{ip.String()}
		}},
		{name: "another pod shows one of three of its sandbox", want: "held SiblingKept kept, held SiblingKept kept, " + byAnother, set: func(s *fixture, pod string) []string {
			sandbox, ip := s.leak(pod)
			more := []netip.Addr{ip, s.share(ip), s.share(ip)}
			s.must(s.PutHandle(s.Context(), sandbox.Handle(), map[netip.Prefix]int{s.blockOf(ip): 3}))
			s.pod(pod+"-other", cluster.PodIPs(more[2].String()))
			return texts(more)
		}},
		{name: "its pod was made again on the network of its node, and the wait for the earlier one is not over", want: "suspected PodReplaced kept", set: shown(func(calico.Sandbox, netip.Addr) options {
			return options{func(p *corev1.Pod) { p.Spec.HostNetwork = true }, other}
		})},
		{name: "its pod has succeeded and shows it", want: finished, set: shown(func(sandbox calico.Sandbox, ip netip.Addr) options {
			return append(sandbox.PodOptions(ip), cluster.Phase(corev1.PodSucceeded))
		})},
	}))
}

// If a pod is gone, its sandbox need not be: an unreachable node may go on running it, with its
// address. Calico releases it regardless. And in etcd, it may be of another cluster, whose pods are
// not known (promise 1). The engine's tests cover the other states of a node.
func TestNodesThatSayNothing(t *testing.T) {
	const held, foreign, gone = "held NodeUnreachable kept", "held NodeForeign kept", "orphan PodAbsent released"
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
	// Another cluster may have its nodes in the same etcd.
	s.must(s.CreateNode(s.Context(), "gone"))
	s.must(s.ApplyNode(s.Context(), "of-another", "of-another"))
	s.must(s.ApplyNode(s.Context(), node+".example", "of-another-2"))
	rows := s.plant([]row{
		{name: "silent", set: on("silent"), want: held},
		{name: "silent, under another name", set: on("calicos-name"), want: held},
		{name: "of no orchestrator", set: on("no-node"), want: foreign},
		{name: "of another cluster", set: on("of-another"), want: foreign},
		{name: "of another cluster, under another name", set: on(node + ".example"), want: foreign},
		{name: "of another cluster, and only its block says so", want: foreign, set: func(s *fixture, pod string) []string {
			ips := s.add(calico.NewSandbox(shop, pod, "of-another"))
			s.editBlock(ips[0], func(b map[string]any) {
				attributes := b["attributes"].([]any)
				owner := attributes[len(attributes)-1].(map[string]any)["secondary"].(map[string]any)
				delete(owner, "node")
			})
			return texts(ips)
		}},
		{name: "gone from Calico, too", set: on("gone"), want: gone},
	})
	_, err := s.Calicoctl(s.Context(), "", "delete", "node", "gone")
	s.must(err)
	s.must(s.Cluster.Kube.CoreV1().Nodes().Delete(s.Context(), "gone", metav1.DeleteOptions{}))
	for _, name := range []string{"silent", "kubernetes-name"} {
		s.must(s.Cluster.SetNodeReady(s.Context(), name, false))
	}
	s.prove(rows)
}

// The devices of a node have the addresses of its tunnels. Calico's agent writes them into the
// annotations of the Node, and in etcd into its own Node (promise 1).
func TestTunnelsHaveTheirAddresses(t *testing.T) {
	each(t, func(s *fixture) {
		_, free := s.leak("gone")
		_, shown := s.leak("shown")
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"projectcalico.org/IPv4VXLANTunnelAddr":%q}}}`, shown)
		_, err := s.Cluster.Kube.CoreV1().Nodes().Patch(s.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		s.must(err)
		want := map[netip.Addr]string{free: "released", shown: "kept"}
		if s.Etcd != nil {
			_, stored := s.leak("stored")
			s.must(s.Apply(s.Context(), "Node", map[string]string{"name": node}, map[string]any{
				"orchRefs": []map[string]string{{"nodeName": node, "orchestrator": "k8s"}}, "wireguard": map[string]any{"interfaceIPv4Address": stored},
			}))
			want[stored] = "kept"
		}
		report := s.mustReap(reap.ExitDone, releaseNow)
		s.wantOutcomes(report, want)
		for _, e := range report.Entries {
			if e.Outcome == "kept" && e.Reason != "AddressInUse" {
				s.Errorf("%s is kept as %s", e.IP, e.Reason)
			}
		}
	})
}
