package whereabouts_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// slicedOn returns the network with slices, on a node. It keeps reservations.
func slicedOn(node string) plugin.Network {
	return plugin.Network{Name: "sliced", Range: "10.0.0.0/24", NodeSliceSize: "/28", Node: node, NetworkName: "red"}
}

// slicePool returns the name of the pool of a node's slice.
func slicePool(node string, nth int) string { return fmt.Sprintf("red-%s-10.0.0.%d-28", node, 16*nth) }

// pass gives the first slice to another node, which ADDs then take for its own. It does not end the test.
func (f *fixture) pass(node string) {
	f.Helper()
	pools := f.Whereabouts.WhereaboutsV1alpha1().NodeSlicePools(cluster.PoolNamespace)
	p, err := pools.Get(f.Context(), "red", metav1.GetOptions{})
	if err == nil {
		for i := range p.Status.Allocations {
			if of := &p.Status.Allocations[i]; of.NodeName == node {
				of.NodeName = ""
			}
		}
		p.Status.Allocations[0].NodeName = node
		_, err = pools.Update(f.Context(), p, metav1.UpdateOptions{})
	}
	if err != nil {
		f.Error(err)
	}
}

// A slicedLeak is what a pod left behind in the slice of node-a.
type slicedLeak struct {
	leave func(f *fixture)
	stays map[string]string // what an undisturbed run leaves
}

// The pod was made again on node-b, and has an address of that node's slice.
var movedLeak = slicedLeak{
	leave: func(f *fixture) {
		f.leaveInSlice()
		_, err := f.addOne(slicedOn("node-b"), "web-0", "sandbox-b")
		f.must(err)
		f.pod("web-0", cluster.OnNode("node-b"), shows("net1", "10.0.0.33"))
		f.mustReap(reap.ExitDone, noLimit)
		f.must((reap.Memory{Cluster: f.Cluster, Namespace: cluster.PoolNamespace}).Age(f.Context(), time.Hour))
		f.toReaper.Reset()
	},
	stays: map[string]string{slicePool("node-b", 2) + " 10.0.0.33": ref("web-0") + " sandbox-b", "red-10.0.0.33": ref("web-0")},
}

// The pod is gone, its StatefulSet wants it back, and node-a is gone.
var retainedLeak = slicedLeak{
	leave: func(f *fixture) {
		f.leaveInSlice()
		f.must(f.Kube.CoreV1().Nodes().Delete(f.Context(), "node-a", metav1.DeleteOptions{}))
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		labels := map[string]string{"app": "web"}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		set.Spec.Template = corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		}
		_, err := f.Kube.AppsV1().StatefulSets(shop).Create(f.Context(), set, metav1.CreateOptions{})
		f.must(err)
	},
	stays: nothing,
}

// leaveInSlice makes the nodes and their slices, and what web-0 has in that of node-a.
func (f *fixture) leaveInSlice() {
	f.Helper()
	f.must(f.Kube.CoreV1().Nodes().DeleteCollection(f.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	f.must(f.Kube.AppsV1().StatefulSets(shop).DeleteCollection(f.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	for _, node := range []string{"node-a", "node-b"} {
		f.must(f.CreateNode(f.Context(), node, true))
	}
	f.slice("red", "node-a", "node-b")
	_, err := f.addOne(slicedOn("node-a"), "web-0", "sandbox-a")
	f.must(err)
}

// While a run releases what a pod left in the slice of a node, the slice passes to the pod's own node, or the
// pod comes back to the first node, at any request; and its ADD, which may have read the reservation as its
// own, writes at that request or at any later one. The pod keeps what its ADD got (promises 1 and 4).
func TestEveryStepASliceIsAdoptedAt(t *testing.T) {
	moves := func(node string, passed bool) func(f *fixture) *heldAdd {
		return func(f *fixture) *heldAdd {
			if passed {
				f.pass(node)
			}
			f.gone("web-0")
			f.pod("web-0", pending, cluster.OnNode(node))
			return f.holdAdd(slicedOn(node), "web-0")
		}
	}
	again := func(f *fixture) *heldAdd { // the sandbox of the pod that is there is made again
		f.pass("node-b")
		return f.holdAdd(slicedOn("node-b"), "web-0")
	}
	for _, tt := range []struct {
		name string
		leak slicedLeak
		node string
		back func(f *fixture) *heldAdd
	}{
		{"it moved, and its node gets the slice", movedLeak, "node-b", again},
		{"it moved, and comes back", movedLeak, "node-a", moves("node-a", false)},
		{"its node is gone, and it comes back where the slice is now", retainedLeak, "node-b", moves("node-b", true)},
		{"its node is gone, and it comes back elsewhere", retainedLeak, "node-b", moves("node-b", false)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			steps, first := f.stepsOf(tt.leak)
			end := len(steps) + 1
			for n := first; n <= end; n++ {
				for later := 0; n+later <= end+1; later++ {
					sampled := n == first || n == end || storeWrite(steps[n-1])
					if testing.Short() && (!sampled || later > 0 && n+later <= end) {
						continue
					}
					f.each(fmt.Sprintf("before %d, and the ADD writes %d later", n, later), func() { f.adoptedAt(tt.leak, tt.back, tt.node, n, later, end) })
				}
			}
		})
	}
}

// stepsOf returns the requests of an undisturbed run that releases a leak, and the number of the first one
// that looks at an owner again.
func (f *fixture) stepsOf(leak slicedLeak) (steps []proxy.Request, first int) {
	f.Helper()
	f.clear("web-0")
	leak.leave(f)
	f.mustReap(reap.ExitDone, noLimit, inOrder)
	f.wantOwners(leak.stays)
	steps = untilReleased(f.toReaper.Requests())
	first = 1 + slices.IndexFunc(steps, func(r proxy.Request) bool { return r.String() == "get pods" })
	if first == 0 {
		f.Fatalf("no look at the owner among %v", steps)
	}
	return steps, first
}

// adoptedAt lets the pod's ADD begin before the run's request n, and write before request n+later, or after
// the run if that is beyond the end.
func (f *fixture) adoptedAt(leak slicedLeak, back func(*fixture) *heldAdd, node string, n, later, end int) {
	f.Helper()
	f.clear("web-0")
	leak.leave(f)
	var h *heldAdd
	written := false
	f.toReaper.Before(proxy.Any, func(_ context.Context, r proxy.Request) proxy.Action {
		if r.Number == n {
			h = back(f)
		}
		if r.Number == n+later && r.Number <= end {
			h.write()
			written = true
		}
		return proxy.Pass()
	})
	f.mustReap(reap.ExitDone, noLimit, inOrder)
	if h == nil {
		h = back(f)
	}
	if !written {
		h.write()
	}
	f.must(h.err)
	f.converge()
	for pool := range f.owners() {
		if pool == slicePool(node, 1)+" "+h.ip || pool == slicePool(node, 2)+" "+h.ip {
			f.wantWholeIn(pool[:len(pool)-len(h.ip)-1], "red", "web-0", newSandbox, h.ip)
			return
		}
	}
	f.Errorf("%s has %s by its ADD; no pool of its node has it: %v", "web-0", h.ip, f.owners())
}

// While a run releases what a pod left in the slice of a node, the late DEL of its sandbox gives it back, and
// another pod on that node gets the address. It keeps it (promise 1).
func TestEveryStepASliceIsGivenAwayAt(t *testing.T) {
	f := newFixture(t)
	for name, leak := range map[string]slicedLeak{"it moved": movedLeak, "its node is gone": retainedLeak} {
		steps, first := f.stepsOf(leak)
		for n := first; n <= len(steps); n++ {
			if testing.Short() && !storeWrite(steps[n-1]) {
				continue
			}
			f.each(fmt.Sprintf("%s, before %d %s", name, n, steps[n-1]), func() {
				f.clear("web-0", "neighbour")
				leak.leave(f)
				ip, err := "", error(nil)
				f.toReaper.Before(func(r proxy.Request) bool { return r.Number == n }, func(context.Context, proxy.Request) proxy.Action {
					f.del(slicedOn("node-a"), "web-0", "sandbox-a")
					f.pod("neighbour", pending, cluster.OnNode("node-a"))
					ip, err = f.addOne(slicedOn("node-a"), "neighbour", newSandbox) // another one, if the reservation is still there
					return proxy.Pass()
				})
				f.mustReap(reap.ExitDone, noLimit, inOrder)
				f.must(err)
				f.wantWholeIn(slicePool("node-a", 1), "red", "neighbour", newSandbox, ip)
			})
		}
	}
}

// What is left over in a slice stays while a pod of that name may adopt its reservation: on the node that has
// the slice now, or out of a range without slices (promises 1 and 2).
func TestSliceThatMayBeAdoptedElsewhereIsKept(t *testing.T) {
	for name, tt := range map[string]struct {
		leak               slicedLeak
		change             func(f *fixture)
		entry, reservation string
	}{
		"its pod's node has the slice": {movedLeak, func(f *fixture) { f.pass("node-b") }, "held SiblingKept kept", "inUse PodPresent kept"},
		"a third node has the slice":   {movedLeak, func(f *fixture) { f.pass("node-c") }, "orphan PodMoved released", "orphan PodMoved released"},
		"a range without slices": {
			movedLeak, func(f *fixture) { f.add(plugin.Network{Range: "10.0.0.0/16", NetworkName: "red"}, "web-0") },
			"held SiblingKept kept", "inUse PodPresent kept",
		},
		"any node has the slice of a node that is gone": {retainedLeak, func(f *fixture) { f.pass("node-b") }, "held SiblingKept kept", "held Retained kept"},
		"no node has the slice of a node that is gone": {
			retainedLeak, func(f *fixture) { f.pass("") }, "orphan PodAbsent released", "orphan PodAbsent released",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tt.leak.leave(f)
			tt.change(f)
			lines := f.mustReap(reap.ExitDone, noLimit).lines
			for _, want := range []string{
				slicePool("node-a", 1) + "/1 10.0.0.17 web-0 " + tt.entry, "red-10.0.0.17 10.0.0.17 web-0 " + tt.reservation,
			} {
				if !slices.Contains(lines, want) {
					t.Errorf("%q is not in the report: %q", want, lines)
				}
			}
		})
	}
}

// A run is killed after a write. The next one finishes its work, although the entry that said in which slice the
// reservation was made is gone (promise 8).
func TestReleaseFromASliceThatWasKilledIsFinished(t *testing.T) {
	for name, leak := range map[string]slicedLeak{"it moved": movedLeak, "its node is gone": retainedLeak} {
		for _, request := range []string{"patch ippools", "patch overlappingrangeipreservations"} {
			t.Run(name+", after "+request, func(t *testing.T) {
				f := newFixture(t)
				leak.leave(f)
				f.killedAfter(request)
				f.converge()
				f.wantOwners(leak.stays)
			})
		}
	}
}
