package calico

import (
	"crypto/rand"
	"encoding/hex"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// DefaultNetwork is the name that Calico's CNI configuration has by default.
const DefaultNetwork = "k8s-pod-network"

// The annotations in which Calico's CNI plugin leaves its word on a pod.
const (
	PodIPAnnotation       = "cni.projectcalico.org/podIP"
	PodIPsAnnotation      = "cni.projectcalico.org/podIPs"
	ContainerIDAnnotation = "cni.projectcalico.org/containerID"
)

// A Sandbox is what an address is given to: one sandbox of a pod on a node, or
// of what is no pod if Pod is empty.
type Sandbox struct {
	Namespace, Pod string
	Node           string // Calico's name for it, which must be there
	ContainerID    string
	Network        string // DefaultNetwork if empty

	// IPv4 and IPv6 say which families to give; neither means IPv4. A valid
	// IP is asked for in their place, and need not be in the node's blocks.
	IPv4, IPv6 bool
	IP         netip.Addr
}

// NewSandbox returns a new sandbox of a pod.
func NewSandbox(namespace, pod, node string) Sandbox {
	return Sandbox{Namespace: namespace, Pod: pod, Node: node, ContainerID: NewContainerID()}
}

// NewContainerID returns an ID as container runtimes make them: 64 digits.
func NewContainerID() string {
	id := make([]byte, 32)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// Handle is the ID of the handle that the sandbox's addresses have.
func (s Sandbox) Handle() string { return s.network() + "." + s.ContainerID }

func (s Sandbox) network() string {
	if s.Network == "" {
		return DefaultNetwork
	}
	return s.Network
}

// PodOptions make a pod look as it does when the sandbox is up: it runs on the
// node, and kubelet and Calico have written down its addresses.
func (s Sandbox) PodOptions(ips ...netip.Addr) []cluster.PodOption {
	options := []cluster.PodOption{
		cluster.OnNode(s.Node),
		cluster.Annotation(ContainerIDAnnotation, s.ContainerID),
	}
	if len(ips) == 0 {
		return options
	}
	var addrs, cidrs []string
	for _, ip := range ips {
		addrs = append(addrs, ip.String())
		cidrs = append(cidrs, single(ip))
	}
	return append(options,
		cluster.PodIPs(addrs...),
		cluster.Annotation(PodIPAnnotation, cidrs[0]),
		cluster.Annotation(PodIPsAnnotation, strings.Join(cidrs, ",")))
}

// single is the CIDR that has the address and no other.
func single(ip netip.Addr) string { return netip.PrefixFrom(ip, ip.BitLen()).String() }
