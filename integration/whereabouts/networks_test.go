package whereabouts_test

import (
	"testing"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
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

// slice gives the second slice of the range to the node and to no other, like the node controller.
func (f *fixture) slice(name, node string) {
	f.Helper()
	pools := f.Whereabouts.WhereaboutsV1alpha1().NodeSlicePools(cluster.PoolNamespace)
	f.must(pools.DeleteCollection(f.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	_, err := pools.Create(f.Context(), &v1alpha1.NodeSlicePool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.NodeSlicePoolSpec{Range: "10.0.0.0/24", SliceSize: "/28"},
		Status: v1alpha1.NodeSlicePoolStatus{Allocations: []v1alpha1.NodeSliceAllocation{
			{NodeName: node, SliceRange: "10.0.0.16/28"},
		}},
	}, metav1.CreateOptions{})
	f.must(err)
}
