package calico_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

type fields = map[string]any

// of are the attributes of an active owner.
func of(pairs ...string) fields {
	owner := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		owner[pairs[i]] = pairs[i+1]
	}
	return fields{"secondary": owner}
}

// What Calico has addresses for beside pods, and what its old and later versions
// wrote. Nothing of the first kind is ever released: what the
// address was given to is no pod, and nothing here could tell whether it is still
// there. Calico takes back a tunnel's address with its node (10), and a virtual
// machine's with the machine (16); it knows where to look.
func TestOddAllocations(t *testing.T) {
	const (
		never, unknown = "held NotPodOwned kept", "held OwnerUnknown kept"
		gone, inUse    = "orphan PodAbsent released", "inUse PodPresent kept"
		absent         = "orphan SandboxAbsent released"
		stamp          = "2024-03-01 12:00:00.123456789 +0000 UTC"
		machine        = "k8s-pod-network.vmi.shop.POD"
	)
	id := func(n int) string { return fmt.Sprintf("%064x", n) }
	each(t, func(s *fixture) {
		s.play("pods: {unnamed: release}\n", []row{
			{name: "tunnel (9)", want: never, set: odd("ipip-tunnel-addr-node-1", of("type", "ipipTunnelAddress", "node", node))},
			{name: "tunnel of a node that is gone (10)", want: never, set: odd("vxlan-tunnel-addr-node-9", of("type", "vxlanTunnelAddress", "node", "node-9"))},
			{name: "tunnel of before types (9)", want: never, set: odd("wireguard-tunnel-addr-node-1", nil)},
			{name: "tunnel of before handles (9)", want: unknown, set: odd("", nil)},
			{name: "load balancer", want: never, set: odd("lb-AbCdEf0123456789", of("type", "loadBalancer", "service", "web", "namespace", shop))},
			{name: "load balancer by its handle", want: never, set: odd("lb-AbCdEf9876543210", nil)},
			{name: "service", want: never, set: odd("k8s-pod-network."+id(1), of("service", "web", "namespace", shop))},
			{name: "Windows (32)", want: never, set: odd("windows-reserved-ipam-handle", of("note", "windows host rsvd"))},
			{name: "of a type that is not known", want: never, set: odd("k8s-pod-network."+id(2), of("type", "awsSecondary", "pod", "gone", "namespace", shop, "node", node))},
			{name: "virtual machine (14, 16, 17)", want: never, set: odd(machine, of("pod", "virt-launcher", "namespace", shop, "node", node, "vmi-name", "vm", "timestamp", stamp))},
			{name: "virtual machine by its UID (15)", want: never, set: odd("k8s-pod-network."+id(3), of("pod", "virt-launcher", "namespace", shop, "vmi-uid", "6b1d"))},
			{name: "virtual machine that is stopped (18, 41)", want: never, set: odd(machine, fields{"secondary": fields{}, "alternateOwnerAttrs": fields{}})},
			// The sequence number stays when Calico moves a machine: its
			// owners are all that tells.
			{name: "virtual machine that moves (42)", want: never, set: apart(`{"handle_id":"k8s-pod-network.` + id(4) + `",` +
				`"secondary":{"pod":"gone","namespace":"shop"},"alternateOwnerAttrs":{"pod":"bystander","namespace":"default"}}`)},
			{name: "virtual machine that has moved half (42)", want: never, set: apart(`{"handle_id":"k8s-pod-network.` + id(5) + `",` +
				`"secondary":null,"alternateOwnerAttrs":{"pod":"gone"}}`)},
			{name: "at rest after its release (31)", want: never, set: apart(`{"releasedAt":"2024-03-01T12:00:00Z"}`)},
			{name: "at rest, with an owner (31)", want: never, set: apart(`{"handle_id":"k8s-pod-network.` + id(6) + `",` +
				`"secondary":{"pod":"gone","namespace":"shop"},"releasedAt":"2024-03-01T12:00:00Z"}`)},
			{name: "at rest no more, as it were", want: gone, set: apart(`{"handle_id":"k8s-pod-network.` + id(17) + `",` +
				`"secondary":{"pod":"gone","namespace":"shop"},"releasedAt":null,"alternateOwnerAttrs":{}}`)},

			{name: "node and no pod (11)", want: unknown, set: odd("POD", of("node", node))},
			{name: "node that is gone and no pod (11)", want: unknown, set: odd("tenant.POD", of("node", "node-9"))},
			{name: "node and some container, and no pod (11)", want: unknown, set: odd("k8s-pod-network."+id(10), of("node", node))},
			{name: "namespace and no pod (11)", want: unknown, set: odd("k8s-pod-network."+id(7), of("namespace", shop, "node", node))},
			{name: "pod and no namespace (11)", want: unknown, set: odd("k8s-pod-network."+id(8), of("pod", "gone", "node", node))},

			// What names a sandbox and no pod is a question of policy (41).
			{name: "sandbox and no pod", want: unknown, told: absent, set: odd("k8s-pod-network."+id(9), nil)},
			{name: "sandbox and empty owners (41)", want: unknown, told: absent, set: odd("k8s-pod-network."+id(11), fields{"secondary": fields{}, "alternateOwnerAttrs": fields{}})},
			{name: "sandbox that a pod shows", want: inUse, set: func(s *fixture, pod string) []string {
				s.pod(pod, cluster.Annotation(calico.ContainerIDAnnotation, id(12)))
				return odd("k8s-pod-network."+id(12), nil)(s, pod+"-other")
			}},
			{name: "sandbox whose address a pod shows", want: "inUse AddressInUse kept", set: func(s *fixture, pod string) []string {
				ip := odd("k8s-pod-network."+id(13), nil)(s, pod)
				s.pod(pod+"-other", cluster.PodIPs(ip...))
				return ip
			}},
			// As it was taken over from host-local (#3940).
			{name: "handle with an interface behind it", want: unknown, told: absent, set: odd("k8s-pod-network."+id(14)+"\r\neth0", nil)},
			{name: "handle with an interface behind it, whose sandbox a pod shows", want: inUse, set: func(s *fixture, pod string) []string {
				s.pod(pod, cluster.Annotation(calico.ContainerIDAnnotation, id(15)))
				return odd("k8s-pod-network."+id(15)+"\r\neth0", nil)(s, pod+"-other")
			}},

			// As Calico v2 called them: by the pod.
			{name: "handle of a pod", want: unknown, told: gone, set: odd("shop.POD", nil)},
			{name: "handle of a pod that is there", want: inUse, set: func(s *fixture, pod string) []string {
				s.pod(pod)
				return odd("shop.POD", nil)(s, pod)
			}},
			{name: "handle of a pod that has ended", want: inUse, set: func(s *fixture, pod string) []string {
				s.pod(pod, cluster.Phase(corev1.PodSucceeded))
				return odd("shop.POD", nil)(s, pod)
			}},
			{name: "handle of a pod, and its name", want: gone, set: func(s *fixture, pod string) []string {
				return odd("shop.POD", of("pod", pod, "namespace", shop, "node", node))(s, pod)
			}},

			// Nothing says that this one is not the sandbox that the pod shows.
			{name: "handle of another form, of a pod that shows a sandbox", want: inUse, set: func(s *fixture, pod string) []string {
				s.pod(pod, cluster.Annotation(calico.ContainerIDAnnotation, id(18)))
				return odd("k8s-pod-network.POD", of("pod", pod, "namespace", shop, "node", node))(s, pod)
			}},

			// As before 3.22.2: only a handle that names one sandbox tells an
			// allocation from the next.
			{name: "no sequence number", want: gone, set: func(s *fixture, pod string) []string {
				_, ip := s.leak(pod)
				s.forget(ip)
				return []string{ip.String()}
			}},
			{name: "neither sequence number nor handle", want: "held NoToken kept", set: func(s *fixture, pod string) []string {
				ip := odd("", of("pod", pod, "namespace", shop, "node", node))(s, pod)
				s.forget(netip.MustParseAddr(ip[0]))
				return ip
			}},
			{name: "no sequence number, and the handle of a pod", want: "held NoToken kept", set: func(s *fixture, pod string) []string {
				ip := odd("shop.POD", of("pod", pod, "namespace", shop, "node", node))(s, pod)
				s.forget(netip.MustParseAddr(ip[0]))
				return ip
			}},
			{name: "no handle", want: gone, set: func(s *fixture, pod string) []string {
				return odd("", of("pod", pod, "namespace", shop, "node", node))(s, pod)
			}},

			{name: "handle that is missing", want: gone, set: func(s *fixture, pod string) []string {
				sandbox, ip := s.leak(pod)
				s.must(s.Delete(s.Context(), calico.Handle, s.HandleName(sandbox.Handle())))
				return []string{ip.String()}
			}},
			// An ADD for a certain address counts once more each time it loses
			// against another.
			{name: "handle that counts too many", want: gone, set: func(s *fixture, pod string) []string {
				sandbox, ip := s.leak(pod)
				s.must(s.PutHandle(s.Context(), sandbox.Handle(), map[netip.Prefix]int{s.blockOf(ip): 3}))
				return []string{ip.String()}
			}},
			{name: "handle that counts too few, of addresses that share an attribute (26)", want: gone, set: func(s *fixture, pod string) []string {
				_, ip := s.leak(pod)
				return []string{ip.String(), s.share(ip).String(), s.share(ip).String()}
			}},
			{name: "block that is half deleted", want: "held Unreadable kept", set: apart(`{"handle_id":"k8s-pod-network.` + id(16) + `",` +
				`"secondary":{"pod":"gone","namespace":"shop"}}],"deleted":true,"later":[0`)},
		})
	})
}

// forget removes the sequence number of an address.
func (s *fixture) forget(ip netip.Addr) {
	s.Helper()
	s.editBlock(ip, func(b map[string]any) {
		delete(b["sequenceNumberForAllocation"].(map[string]any), fmt.Sprint(s.ordinal(ip)))
	})
}

// share gives one more address to the owner of this one.
func (s *fixture) share(ip netip.Addr) netip.Addr {
	s.Helper()
	var ordinal int
	s.editBlock(ip, func(b map[string]any) {
		queue := b["unallocated"].([]any)
		ordinal, b["unallocated"] = number(queue[0]), queue[1:]
		allocations := b["allocations"].([]any)
		allocations[ordinal] = allocations[s.ordinal(ip)]
		sequences := b["sequenceNumberForAllocation"].(map[string]any)
		sequences[fmt.Sprint(ordinal)] = sequences[fmt.Sprint(s.ordinal(ip))]
	})
	shared := s.blockOf(ip).Addr()
	for range ordinal {
		shared = shared.Next()
	}
	return shared
}

// apart is an address with an attribute that the plugin of today would not keep: in
// a block of its own, that the plugin does not write.
func apart(attribute string) func(*fixture, string) []string {
	return func(s *fixture, pod string) []string {
		s.Helper()
		ip := pool31.Addr()
		for range 2 * number(json.Number(strings.TrimPrefix(pod, "pod-"))) {
			ip = ip.Next()
		}
		s.putBlock(netip.PrefixFrom(ip, 31), `"allocations":[0,null],"unallocated":[1],`+
			`"sequenceNumber":1800000000000000003,"sequenceNumberForAllocation":{"0":1800000000000000001},`+
			`"attributes":[`+attribute+`]`)
		return []string{ip.String()}
	}
}

// pool31 is where the blocks are that Calico did not make.
var pool31 = netip.MustParsePrefix("10.31.0.0/16")

// putBlock writes a block that Calico did not make.
func (s *fixture) putBlock(cidr netip.Prefix, rest string) {
	s.Helper()
	s.must(s.Put(s.Context(), calico.Block, s.BlockName(cidr),
		`{"cidr":"`+cidr.String()+`","affinity":"host:node-1","strictAffinity":false,`+rest+`}`))
}
