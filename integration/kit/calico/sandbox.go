package calico

import (
	"crypto/rand"
	"encoding/hex"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// DefaultNetwork is the name that Calico's CNI configuration has by default, and here.
const DefaultNetwork = "k8s-pod-network"

// The annotations that Calico's CNI plugin writes on a pod.
const (
	PodIPAnnotation       = "cni.projectcalico.org/podIP"
	PodIPsAnnotation      = "cni.projectcalico.org/podIPs"
	ContainerIDAnnotation = "cni.projectcalico.org/containerID"
)

// A Sandbox is what gets an address: one sandbox of a pod on a node, or of something else if Pod is
// empty.
type Sandbox struct {
	Namespace, Pod string
	Node           string // Calico's name for it; it must exist
	ContainerID    string

	// IPv4 and IPv6 say which families to give; neither means IPv4. If IP is valid, it is requested
	// instead; it need not be in the node's blocks.
	IPv4, IPv6 bool
	IP         netip.Addr

	// Pools are the IPPools to give IPv4 addresses of, which Calico's plugin reads from the pod; none means any.
	Pools []string
}

// NewSandbox returns a new sandbox of a pod.
func NewSandbox(namespace, pod, node string) Sandbox {
	return Sandbox{Namespace: namespace, Pod: pod, Node: node, ContainerID: NewContainerID()}
}

// NewContainerID returns an ID like those of container runtimes: 64 digits.
func NewContainerID() string {
	id := make([]byte, 32)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// Handle returns the ID of the handle of the sandbox's addresses.
func (s Sandbox) Handle() string { return DefaultNetwork + "." + s.ContainerID }

// PodOptions make a pod look as it does when its sandbox is up: it runs on the node, and kubelet
// and Calico have recorded its addresses.
func (s Sandbox) PodOptions(ips ...netip.Addr) []cluster.PodOption {
	options := append(s.annotations(ips), cluster.OnNode(s.Node))
	if len(ips) == 0 {
		return options
	}
	var addrs []string
	for _, ip := range ips {
		addrs = append(addrs, ip.String())
	}
	return append(options, cluster.PodIPs(addrs...))
}

// annotations are what Calico writes into the pod.
func (s Sandbox) annotations(ips []netip.Addr) []cluster.PodOption {
	options := []cluster.PodOption{cluster.Annotation(ContainerIDAnnotation, s.ContainerID)}
	if len(ips) == 0 {
		return options
	}
	var cidrs []string
	for _, ip := range ips {
		cidrs = append(cidrs, single(ip))
	}
	return append(options,
		cluster.Annotation(PodIPAnnotation, cidrs[0]),
		cluster.Annotation(PodIPsAnnotation, strings.Join(cidrs, ",")))
}

// single returns the CIDR that has only this address.
func single(ip netip.Addr) string { return netip.PrefixFrom(ip, ip.BitLen()).String() }
