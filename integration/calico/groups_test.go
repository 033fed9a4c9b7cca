package calico_test

import (
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// dual has the plugin give an address of either family to a sandbox.
func (s *fixture) dual(pod string) (calico.Sandbox, []netip.Addr) {
	s.Helper()
	sandbox := calico.NewSandbox(shop, pod, node)
	sandbox.IPv4, sandbox.IPv6 = true, true
	return sandbox, s.add(sandbox)
}

// All addresses of a handle go together or not at all, also if they are in
// several blocks: Calico freed healthy pods before it did so (#5044). Scenario 7.
func TestAddressesOfOneSandboxShareTheirFate(t *testing.T) {
	const (
		inUse, gone = "inUse PodPresent kept", "orphan PodAbsent released"
		shown, kept = "inUse AddressInUse kept", "held SiblingKept kept"
	)
	each(t, func(s *fixture) {
		rows := s.plant([]row{
			{name: "the pod is gone", want: gone, set: func(s *fixture, pod string) []string {
				_, ips := s.dual(pod)
				return texts(ips)
			}},
			{name: "the pod shows IPv4 alone", want: inUse, told: gone, set: func(s *fixture, pod string) []string {
				sandbox, ips := s.dual(pod)
				s.pod(pod, sandbox.PodOptions(ips[0])...)
				return texts(ips)
			}},
			{name: "another pod shows IPv4", want: shown + ", " + kept, set: func(s *fixture, pod string) []string {
				_, ips := s.dual(pod)
				s.pod(pod+"-other", cluster.PodIPs(ips[0].String()))
				return texts(ips)
			}},
			{name: "another pod shows IPv6", want: kept + ", " + shown, set: func(s *fixture, pod string) []string {
				_, ips := s.dual(pod)
				s.pod(pod+"-other", cluster.PodIPs(ips[1].String()))
				return texts(ips)
			}},
			{name: "IPv6 is no pod's", want: kept + ", held NotPodOwned kept", set: func(s *fixture, pod string) []string {
				_, ips := s.dual(pod)
				s.editBlock(ips[1], func(b map[string]any) {
					s.attributeOf(b, ips[1])["secondary"].(map[string]any)["type"] = "awsSecondary"
				})
				return texts(ips)
			}},
			{name: "another pod shows one of three in a block", want: kept + ", " + kept + ", " + shown, set: func(s *fixture, pod string) []string {
				_, ip := s.leak(pod)
				more := []netip.Addr{ip, s.share(ip), s.share(ip)}
				s.pod(pod+"-other", cluster.PodIPs(more[2].String()))
				return texts(more)
			}},
			{name: "the pod claims another sandbox, and shows IPv4 of this one", want: inUse, told: gone, set: func(s *fixture, pod string) []string {
				sandbox, ips := s.dual(pod)
				s.pod(pod, append(sandbox.PodOptions(ips[0]), cluster.Annotation(calico.ContainerIDAnnotation, calico.NewContainerID()))...)
				return texts(ips)
			}},
		})
		s.prove(releaseNow, rows, func(r row) string { return r.want })
		for _, pod := range []string{"pod-1", "pod-6"} {
			s.must(s.Cluster.DeletePod(s.Context(), shop, pod))
		}
		s.prove(releaseNow, rows, secondRun)
	})
}
