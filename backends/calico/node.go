package calico

import (
	"cmp"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A node is one of Calico's own nodes, which are in etcd.
type node struct {
	ipam.StoreNode
	tunnels []netip.Addr // the addresses of its tunnels
}

// readNode decodes a Calico node. The node that it stands for is that of its orchRefs, or has its
// name if they name none. With an error, only the name in Calico is known.
func readNode(r resource) (node, error) {
	n := node{StoreNode: ipam.StoreNode{Name: r.name}}
	var fields struct {
		Spec struct {
			Refs []struct {
				Name         string `json:"nodeName"`
				Orchestrator string `json:"orchestrator"`
			} `json:"orchRefs"`
			BGP struct {
				IPIP string `json:"ipv4IPIPTunnelAddr"`
			} `json:"bgp"`
			VXLAN     string `json:"ipv4VXLANTunnelAddr"`
			VXLAN6    string `json:"ipv6VXLANTunnelAddr"`
			Wireguard struct {
				IPv4 string `json:"interfaceIPv4Address"`
				IPv6 string `json:"interfaceIPv6Address"`
			} `json:"wireguard"`
		} `json:"spec"`
	}
	if err := kube.Decode(r.data, &fields); err != nil {
		return n, err
	}
	spec := fields.Spec
	for _, ref := range spec.Refs {
		if ref.Orchestrator == "k8s" {
			n.Node = cmp.Or(n.Node, ref.Name)
		}
	}
	n.Node = cmp.Or(n.Node, n.Name)
	for _, text := range []string{spec.BGP.IPIP, spec.VXLAN, spec.VXLAN6, spec.Wireguard.IPv4, spec.Wireguard.IPv6} {
		if ip, err := netip.ParseAddr(text); err == nil { // Calico does not set up what it cannot parse
			n.tunnels = append(n.tunnels, ipam.Shown(ip))
		}
	}
	return n, nil
}

// storeNodes are Calico's own nodes, by their names in Calico.
type storeNodes map[string]*ipam.StoreNode

// takeNodes adds Calico's own nodes to the listing.
func (l *listing) takeNodes(nodes []node) {
	l.nodes, l.tunnels = make(storeNodes, len(nodes)), make(map[netip.Addr]string)
	first := make(map[string]*ipam.StoreNode, len(nodes)) // by their names in the cluster
	for _, n := range nodes {
		one := &n.StoreNode
		l.nodes[one.Name] = one
		if twin := first[one.Node]; twin == nil {
			first[one.Node] = one
		} else {
			one.Twin, twin.Twin = twin.Name, one.Name
		}
		for _, ip := range n.tunnels {
			l.tunnels[ip] = one.Name
		}
	}
}

// kubernetesName returns the name that the cluster has for one of Calico's nodes.
func (s storeNodes) kubernetesName(name string) string {
	if n := s[name]; n != nil {
		return cmp.Or(n.Node, name)
	}
	return name
}
