package whereabouts_test

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A node is removed, and another gets its slice of the range.
func TestSliceThatAnotherNodeGot(t *testing.T) {
	slicesOf := func(node string, n plugin.Network) plugin.Network {
		n.Name, n.Range, n.NodeSliceSize, n.Node = "sliced", "10.0.0.0/24", "/28", node
		return n
	}
	reassigned := func(n plugin.Network) func(*fixture) {
		return func(f *fixture) {
			name := "sliced"
			if n.NetworkName != "" {
				name = n.NetworkName
			}
			f.slice(name, "node-a")
			f.add(slicesOf("node-a", n), "web-0")
			f.slice(name, "node-b")
			f.runs("web-1", f.add(slicesOf("node-b", n), "web-1")...)
		}
	}
	play(t, []scenario{{
		name: "without overlapping ranges, so that both nodes give one address",
		set:  reassigned(plugin.Network{DisableOverlapping: true}),
		want: []string{
			"node-a-10.0.0.16-28/1 10.0.0.17 web-0 orphan PodAbsent released",
			"node-b-10.0.0.16-28/1 10.0.0.17 web-1 inUse PodPresent kept",
		},
	}, {
		name: "with overlapping ranges, so that the new node has to spare it",
		set:  reassigned(plugin.Network{}),
		want: []string{
			"node-a-10.0.0.16-28/1 10.0.0.17 web-0 orphan PodAbsent released",
			"10.0.0.17 10.0.0.17 web-0 orphan PodAbsent released",
			"node-b-10.0.0.16-28/2 10.0.0.18 web-1 inUse PodPresent kept",
			"10.0.0.18 10.0.0.18 web-1 inUse PodPresent kept",
		},
		then: func(f *fixture) {
			f.wantAddresses(f.add(slicesOf("node-b", plugin.Network{}), "web-2"), "10.0.0.17")
		},
	}})
}

// slice gives the second slice of the range and those after it to the nodes, and none to others, like
// the node controller.
func (f *fixture) slice(name string, nodes ...string) {
	f.Helper()
	pools := f.Whereabouts.WhereaboutsV1alpha1().NodeSlicePools(cluster.PoolNamespace)
	f.must(pools.DeleteCollection(f.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	var given []v1alpha1.NodeSliceAllocation
	for i, node := range nodes {
		given = append(given, v1alpha1.NodeSliceAllocation{NodeName: node, SliceRange: fmt.Sprintf("10.0.0.%d/28", 16*(i+1))})
	}
	_, err := pools.Create(f.Context(), &v1alpha1.NodeSlicePool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.NodeSlicePoolSpec{Range: "10.0.0.0/24", SliceSize: "/28"},
		Status:     v1alpha1.NodeSlicePoolStatus{Allocations: given},
	}, metav1.CreateOptions{})
	f.must(err)
}

// A pod was made again on another node, and has an address of that node's slice. What it had in the
// slice of the first one goes: no ADD on the second node looks there. While a third node is down, what
// is in the slices of others is not held for it.
func TestSliceOfAnotherNodeThanThatOfThePod(t *testing.T) {
	for _, tt := range []struct {
		name     string
		disabled bool
		network  string
	}{
		{"a named network without reservations", true, "red"},
		{"an unnamed network without reservations", true, ""},
		{"a named network with reservations", false, "red"},
		{"an unnamed network with reservations", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			for node, ready := range map[string]bool{"node-a": true, "node-b": true, "node-c": false} {
				f.must(f.CreateNode(f.Context(), node, ready))
			}
			f.slice(cmp.Or(tt.network, "sliced"), "node-a", "node-b", "node-c")
			on := func(node string) plugin.Network {
				return plugin.Network{
					Name: "sliced", Range: "10.0.0.0/24", NodeSliceSize: "/28", Node: node, NetworkName: tt.network, DisableOverlapping: tt.disabled,
				}
			}
			f.wantAddresses(f.add(on("node-a"), "web-0"), "10.0.0.17")
			f.wantAddresses(f.add(on("node-a"), "gone-0"), "10.0.0.18")
			f.wantAddresses(f.add(on("node-c"), "gone-1"), "10.0.0.49")
			f.wantAddresses(f.add(on("node-b"), "web-0"), "10.0.0.33")
			f.pod("web-0", cluster.OnNode("node-b"), shows("net1", "10.0.0.33"))
			before := ""
			if tt.network != "" {
				before = tt.network + "-"
			}
			want := []string{
				before + "node-a-10.0.0.16-28/1 10.0.0.17 web-0 suspected PodMoved kept",
				before + "node-a-10.0.0.16-28/2 10.0.0.18 gone-0 orphan PodAbsent released",
				before + "node-b-10.0.0.32-28/1 10.0.0.33 web-0 inUse PodPresent kept",
				before + "node-c-10.0.0.48-28/1 10.0.0.49 gone-1 held NodeUnreachable kept",
			}
			if !tt.disabled {
				want = append(want,
					before+"10.0.0.17 10.0.0.17 web-0 suspected PodMoved kept",
					before+"10.0.0.18 10.0.0.18 gone-0 orphan PodAbsent released",
					before+"10.0.0.33 10.0.0.33 web-0 inUse PodPresent kept",
					before+"10.0.0.49 10.0.0.49 gone-1 held NodeUnreachable kept")
			}
			f.wantLines(want, f.mustReap(reap.ExitDone, "").lines)
		})
	}
}
