package calico_test

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

type options = []cluster.PodOption

// Who has an address. The numbers are those of the survey of Calico's own tests.
func TestPodsHaveTheirAddresses(t *testing.T) {
	sandboxIs := func(id string) cluster.PodOption {
		return cluster.Annotation(calico.ContainerIDAnnotation, id)
	}
	other := cluster.PodIPs("10.99.0.1")
	inUse, gone := "inUse PodPresent kept", "orphan PodAbsent released"
	finished, replaced := "held PodFinished kept", "suspected SandboxReplaced kept"
	both := func(s *fixture, pod string, show func(first, second calico.Sandbox, ips [2]netip.Addr) options) []string {
		s.Helper()
		a, first := s.leak(pod)
		b, second := s.leak(pod)
		s.pod(pod, show(a, b, [2]netip.Addr{first, second})...)
		return []string{first.String(), second.String()}
	}
	each(t, func(s *fixture) {
		s.play("pods: {finished: release}\n", []row{
			{name: "its pod is gone (1)", set: leaks, want: gone},
			{name: "its pod shows it (4)", want: inUse, set: func(s *fixture, pod string) []string {
				_, ip := s.live(pod)
				return []string{ip.String()}
			}},
			// Wherever it is shown, also by a pod that seems to have another
			// sandbox. Calico's GC looks at the status alone (#13858).
			{name: "its pod shows it as its second address (4)", want: inUse, set: shown(func(_ calico.Sandbox, ip netip.Addr) options {
				return options{cluster.PodIPs("fd99::1", ip.String()), sandboxIs(calico.NewContainerID())}
			})},
			{name: "its pod shows it in Calico's annotation and another in the status", want: inUse, set: shown(func(_ calico.Sandbox, ip netip.Addr) options {
				return options{other, sandboxIs(calico.NewContainerID()), cluster.Annotation(calico.PodIPAnnotation, ip.String()+"/32")}
			})},
			{name: "its pod shows it in Calico's other annotation and another in the status", want: inUse, set: shown(func(_ calico.Sandbox, ip netip.Addr) options {
				return options{other, sandboxIs(calico.NewContainerID()), cluster.Annotation(calico.PodIPsAnnotation, "fd99::2/128,"+ip.String()+"/32")}
			})},
			{name: "its pod is gone, and another shows it", want: "inUse AddressInUse kept", set: func(s *fixture, pod string) []string {
				_, ip := s.leak(pod)
				s.pod(pod+"-other", cluster.PodIPs(ip.String()))
				return []string{ip.String()}
			}},
			// Whose secondary interfaces Calico gives addresses to shows them
			// in Multus' annotation alone.
			{name: "its pod is gone, and another shows it by Multus", want: "inUse AddressInUse kept", set: func(s *fixture, pod string) []string {
				_, ip := s.leak(pod)
				s.pod(pod+"-other", cluster.Networks(cluster.Attached("shop/net", "net1", ip.String())))
				return []string{ip.String()}
			}},
			{name: "its pod shows nothing yet (5)", want: inUse, set: shown(func(calico.Sandbox, netip.Addr) options {
				return options{cluster.Phase(corev1.PodPending)}
			})},
			// Calico takes these for leaks. The sandbox tells: as long as no
			// other one is shown, this one may be the pod's, and its status
			// late or wrong.
			{name: "its pod shows the sandbox and another address (6)", want: inUse, set: shown(func(sandbox calico.Sandbox, _ netip.Addr) options {
				return options{other, sandboxIs(sandbox.ContainerID)}
			})},
			{name: "its pod shows no sandbox and another address (6)", want: inUse, set: shown(func(calico.Sandbox, netip.Addr) options {
				return options{other}
			})},
			{name: "its pod shows another sandbox and no address (6)", want: inUse, set: shown(func(calico.Sandbox, netip.Addr) options {
				return options{cluster.Phase(corev1.PodPending), sandboxIs(calico.NewContainerID())}
			})},
			{name: "its pod shows another sandbox, another address, and what cannot be read (6)", want: inUse, set: shown(func(calico.Sandbox, netip.Addr) options {
				return options{other, sandboxIs(calico.NewContainerID()), cluster.Annotation(cluster.NetworkStatusAnnotation, "[{")}
			})},
			// The owner of a pod may write any sandbox into its annotations, and may
			// leave a secondary address out of Multus'. Calico has no allocation of
			// that sandbox, so this one may be the pod's.
			{name: "its pod claims another sandbox, and shows another address (6, 38)", want: inUse, set: shown(func(calico.Sandbox, netip.Addr) options {
				return options{other, sandboxIs(calico.NewContainerID()), cluster.Networks(cluster.Attached("shop/net", "net1", "10.99.0.2"))}
			})},
			{name: "its pod claims the sandbox before, and an address of that one", want: inUse, set: func(s *fixture, pod string) []string {
				return both(s, pod, func(first, _ calico.Sandbox, ips [2]netip.Addr) options {
					return options{other, sandboxIs(first.ContainerID), cluster.Annotation(calico.PodIPAnnotation, ips[0].String()+"/32")}
				})
			}},
			// It takes its time: see TestReplacedSandboxes.
			{name: "its pod shows a later sandbox and its address (6, 38)", want: replaced + ", " + inUse, set: func(s *fixture, pod string) []string {
				return both(s, pod, func(_, second calico.Sandbox, ips [2]netip.Addr) options { return second.PodOptions(ips[1]) })
			}},
			// So where ptp, bridge or macvlan has calico-ipam: no program writes the
			// sandbox into the annotations, and the order of the two tells.
			{name: "its pod shows no sandbox, and the address of a later one", want: replaced + ", " + inUse, set: func(s *fixture, pod string) []string {
				return both(s, pod, func(_, _ calico.Sandbox, ips [2]netip.Addr) options { return options{cluster.PodIPs(ips[1].String())} })
			}},
			{name: "its pod shows no sandbox, and the address of the one before", want: inUse, set: func(s *fixture, pod string) []string {
				return both(s, pod, func(_, _ calico.Sandbox, ips [2]netip.Addr) options { return options{cluster.PodIPs(ips[0].String())} })
			}},
			// Calico takes it for a leak, which is how a stale file with the
			// node's name has it give the address away twice (#12257).
			{name: "its pod is on another node (40)", want: inUse, set: shown(func(sandbox calico.Sandbox, ip netip.Addr) options {
				return append(sandbox.PodOptions(ip), cluster.OnNode("node-2"))
			})},
			{name: "its pod is on another node and shows nothing (40)", want: inUse, set: shown(func(calico.Sandbox, netip.Addr) options {
				return options{cluster.Phase(corev1.PodPending), cluster.OnNode("node-2")}
			})},

			// A StatefulSet's pod never gets the address of its former sandbox in Calico.
			{name: "its pod is gone, and its StatefulSet brings it back", want: gone, set: func(s *fixture, pod string) []string {
				s.createSet(pod, 1)
				return leaks(s, pod+"-0")
			}},

			// Calico takes the first two for leaks and never the third. Here it
			// is one question, which the policy answers.
			{name: "its pod has succeeded and shows it (39)", want: finished, told: "orphan PodFinished released", set: shown(func(sandbox calico.Sandbox, ip netip.Addr) options {
				return append(sandbox.PodOptions(ip), cluster.Phase(corev1.PodSucceeded))
			})},
			{name: "its pod has succeeded and shows it, and another sandbox (39)", want: finished, told: "orphan PodFinished released", set: shown(func(_ calico.Sandbox, ip netip.Addr) options {
				return options{cluster.Phase(corev1.PodSucceeded), cluster.PodIPs(ip.String()), sandboxIs(calico.NewContainerID())}
			})},
			{name: "its pod was evicted and shows it (39)", want: finished, told: "orphan PodFinished released", set: shown(func(sandbox calico.Sandbox, ip netip.Addr) options {
				return append(sandbox.PodOptions(ip), cluster.Phase(corev1.PodFailed), func(p *corev1.Pod) { p.Status.Reason = "Evicted" })
			})},
			{name: "its pod has failed and shows nothing (39)", want: finished, told: "orphan PodFinished released", set: shown(func(calico.Sandbox, netip.Addr) options {
				return options{cluster.Phase(corev1.PodFailed)}
			})},
			{name: "its pod has succeeded, and another runs and shows it", want: "inUse AddressInUse kept", set: func(s *fixture, pod string) []string {
				sandbox, ip := s.leak(pod)
				s.pod(pod, append(sandbox.PodOptions(ip), cluster.Phase(corev1.PodSucceeded))...)
				s.pod(pod+"-other", cluster.PodIPs(ip.String()))
				return []string{ip.String()}
			}},
		})
	})
}
