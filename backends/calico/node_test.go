package calico

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// nodeOf returns a Calico node with the JSON of its spec.
func nodeOf(t *testing.T, name, spec string) node {
	t.Helper()
	n, err := readNode(resource{name, []byte(`{"kind":"Node","spec":` + spec + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCalicoNodes(t *testing.T) {
	at := netip.MustParseAddr
	for _, tt := range []struct {
		name, spec string
		node       string // in the cluster
		tunnels    []netip.Addr
	}{
		{"of Kubernetes", `{"orchRefs":[{"nodeName":"w-1","orchestrator":"k8s"}]}`, "w-1", nil},
		{"of two orchestrators", `{"orchRefs":[{"nodeName":"x","orchestrator":"openstack"},{"nodeName":"w-1","orchestrator":"k8s"}]}`, "w-1", nil},
		{"of another orchestrator", `{"orchRefs":[{"nodeName":"x","orchestrator":"openstack"}]}`, "node-1", nil},
		{"of Kubernetes, without a name", `{"orchRefs":[{"orchestrator":"k8s"}]}`, "node-1", nil},
		{"of none", `{}`, "node-1", nil},
		{"with tunnels", `{"bgp":{"ipv4Address":"192.0.2.1/24","ipv4IPIPTunnelAddr":"10.0.0.1"},"ipv4VXLANTunnelAddr":"10.0.0.2","ipv6VXLANTunnelAddr":"fd00::3",` +
			`"wireguard":{"interfaceIPv4Address":"10.0.0.4","interfaceIPv6Address":"fd00::5"},"vxlanTunnelMACAddr":"66:00:00:00:00:01"}`, "node-1",
			[]netip.Addr{at("10.0.0.1"), at("10.0.0.2"), at("fd00::3"), at("10.0.0.4"), at("fd00::5")}},
		{"with a tunnel without a valid address", `{"ipv4VXLANTunnelAddr":"none","bgp":null,"wireguard":null}`, "node-1", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := nodeOf(t, "node-1", tt.spec)
			if got.Name != "node-1" || got.Node != tt.node {
				t.Errorf("readNode = %+v, want the node %s", got.StoreNode, tt.node)
			}
			if diff := cmp.Diff(tt.tunnels, got.tunnels, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("tunnels (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 1, 2. Another cluster may have its nodes in the same etcd. Which of Calico's nodes has an
// address is told by the attribute, or else by the affinity of the block; the affinity does not
// say on which node the pod is.
func TestAllocationsHaveTheNodeOfCalico(t *testing.T) {
	const ref = `{"orchRefs":[{"nodeName":"ip-10-0-0-1.internal","orchestrator":"k8s"}]}`
	etcd := shapes[1]
	block := func(attribute, affinity string) object {
		return etcd.stored(blocks, "10.0.0.1/32", `{"cidr":"10.0.0.1/32","allocations":[0],"unallocated":[],`+affinity+
			`"attributes":[{"handle_id":"net.a","secondary":{"namespace":"default",`+attribute+`"pod":"web-0"}}]}`)
	}
	const on1, of2 = `"node":"node-1",`, `"affinity":"host:node-2",`
	for _, tt := range []struct {
		name      string
		block     object
		nodes     []node
		owner     string          // the node of the owner
		storeNode *ipam.StoreNode // of the allocation
	}{
		{"its node is of Kubernetes", block(on1, of2), []node{nodeOf(t, "node-1", ref), nodeOf(t, "node-2", "{}")},
			"ip-10-0-0-1.internal", &ipam.StoreNode{Name: "node-1", Node: "ip-10-0-0-1.internal"}},
		{"its node is gone", block(on1, of2), []node{nodeOf(t, "node-2", "{}")}, "node-1", nil},
		{"it names no node", block("", of2), []node{nodeOf(t, "node-1", "{}"), nodeOf(t, "node-2", "{}")},
			"", &ipam.StoreNode{Name: "node-2", Node: "node-2"}},
		{"it names no node, and that of the block is gone", block("", of2), []node{nodeOf(t, "node-1", "{}")}, "", nil},
		{"it names no node, and the block is of none", block("", ""), []node{nodeOf(t, "node-1", "{}")}, "", nil},
		{"it names no node, and the block is a service's", block("", `"affinity":"virtual:node-1",`), []node{nodeOf(t, "node-1", "{}")}, "", nil},
		{"two nodes are called alike", block(on1, of2), []node{nodeOf(t, "node-2", ref), nodeOf(t, "node-1", ref)},
			"ip-10-0-0-1.internal", &ipam.StoreNode{Name: "node-1", Node: "ip-10-0-0-1.internal", Twin: "node-2"}},
		{"there are no nodes", block(on1, of2), nil, "node-1", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := listingOf([]object{tt.block}, nil, tt.nodes)
			a := l.finish(l.blocks[0]).Allocations[0]
			if a.Owner.Node != tt.owner || a.Owner.Pod.Name != "web-0" {
				t.Errorf("the owner is %+v, want the node %q", a.Owner, tt.owner)
			}
			if diff := cmp.Diff(tt.storeNode, a.StoreNode); diff != "" {
				t.Errorf("node of the store (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 2. Files may have a node that cannot be read. It is not taken for a node of the cluster.
func TestNodeInFilesThatCannotBeReadIsOfNoCluster(t *testing.T) {
	found := newFiles([]ipam.Document{
		{Key: resourcePrefix + "nodes/node-1", Data: []byte(`{"spec": 7}`)},
		{Data: []byte(threeOfFour)},
	}, 4)
	listed := 0
	for pool, err := range found.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		listed++
		a := pool.Allocations[0]
		if diff := cmp.Diff(&ipam.StoreNode{Name: "node-1"}, a.StoreNode); diff != "" || a.Owner.Node != "node-1" {
			t.Errorf("on node %q; node of the store (-want +got):\n%s", a.Owner.Node, diff)
		}
	}
	if listed != 1 {
		t.Errorf("%d blocks were listed, want 1", listed)
	}
}

// Promise 2. Without Calico's nodes, it is not known whose an address is.
func TestWithoutCalicosNodesNothingIsListed(t *testing.T) {
	s := newFixture(t, shapes[1])
	s.leak(1)
	s.onRequest(func(request string) error {
		if request == "nodes" {
			return errBroken
		}
		return nil
	})
	failures := 0
	for pool, err := range s.backend.List(t.Context()) {
		failures++
		if err == nil || !strings.Contains(err.Error(), "list Calico's nodes") {
			t.Errorf("listed %s, %v", pool.Name, err)
		}
	}
	if failures != 1 {
		t.Errorf("List yields %d times, want once", failures)
	}
}

// Promise 1. Calico's nodes say which addresses their tunnels have, in every pool.
func TestPoolsHaveTheTunnelsOfCalicosNodes(t *testing.T) {
	l := listingOf([]object{oneAddress(shapes[1], "10.0.0.1/32", "net.a")}, nil,
		[]node{nodeOf(t, "node-1", `{"ipv4VXLANTunnelAddr":"10.0.0.1"}`), nodeOf(t, "node-2", `{"wireguard":{"interfaceIPv6Address":"fd00::5"}}`)})
	want := map[netip.Addr]string{netip.MustParseAddr("10.0.0.1"): "node-1", netip.MustParseAddr("fd00::5"): "node-2"}
	if diff := cmp.Diff(want, l.finish(l.blocks[0]).Tunnels, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("tunnels (-want +got):\n%s", diff)
	}
	// In the Kubernetes datastore, the nodes of the API server show them.
	l = listingOf([]object{oneAddress(shapes[0], "10.0.0.1/32", "net.a")}, nil, nil)
	if l.finish(l.blocks[0]).Tunnels == nil {
		t.Error("nodes take no addresses")
	}
}
