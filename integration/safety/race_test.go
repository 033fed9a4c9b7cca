package safety_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// network is the network of the pods that are watched. The networks that
// overlapping returns are over the same addresses.
var network = plugin.Network{Range: "10.1.0.0/24"}

// The two sandboxes of a pod that comes back.
const (
	oldSandbox = "sandbox-1"
	newSandbox = "sandbox-2"
)

// A visitor is a pod that comes back under the name of one that died, and its
// ADD, held up between the plugin's reading and its writing of the pool.
type visitor struct {
	gate *proxy.Gate
	done chan struct{}
	ip   string
	err  error
}

// comes creates the pod and starts its ADD. It returns when the plugin has
// read all that it reads and is about to write the pool.
func (s *scene) comes(t *testing.T, pod string) *visitor {
	t.Helper()
	s.pod(t, pod)
	v := &visitor{gate: proxy.NewGate(), done: make(chan struct{})}
	s.toPlugin.Before(proxy.On("patch ippools"), v.gate.Hook)
	ctx := t.Context()
	go func() {
		defer close(v.done)
		v.ip, v.err = s.add(ctx, network, pod, newSandbox)
	}()
	select {
	case <-v.gate.Arrived():
	case <-v.done:
	}
	return v
}

// writes lets the ADD write, and waits for its end.
func (v *visitor) writes() {
	v.gate.Open()
	<-v.done
}

// leak gives a pod an address by a real ADD and lets it die without a DEL.
func (s *scene) leak(t *testing.T, pod string) (ip string) {
	t.Helper()
	s.pod(t, pod)
	ip = s.mustAdd(t, network, pod, oldSandbox)
	s.running(t, pod, ip)
	s.dies(t, pod)
	return ip
}

// requests are those of an undisturbed run that releases one address, as its
// proxy saw them.
func (s *scene) requests(t *testing.T) []proxy.Request {
	t.Helper()
	s.wipe(t)
	s.leak(t, "web-0")
	s.run(t, reap.ExitDone, releaseNow)
	s.checkStore(t, store{})
	return s.toReaper.Requests()
}

// A pod comes back under its name while the run is at any of its steps, and
// its ADD writes at that step or at any later one. Whatever the run has made
// of the old entry and the old allocation by then, the pod keeps what its ADD
// got (promises 1 and 4), nothing that it left behind stays blocked, and no
// run fails for it.
func TestPodThatComesBackKeepsWhatItsAddGot(t *testing.T) {
	s := newScene(t)
	s.pod(t, "bystander")
	steps := untilReleased(s.requests(t))
	for n := confirmation(t, steps); n <= len(steps)+1; n++ {
		where := "after the release"
		if n <= len(steps) {
			where = fmt.Sprintf("before %d %s", n, steps[n-1])
		}
		t.Run(where, func(t *testing.T) {
			over := false
			for later := 0; !over; later++ {
				t.Run(fmt.Sprintf("ADD writes %d later", later), func(t *testing.T) {
					over = s.visit(t, n, later, len(steps)+1)
				})
			}
		})
	}
}

// untilReleased are the requests without the last ones, which are about the run's
// journal, lock and events: nothing in a store depends on what comes in between.
func untilReleased(steps []proxy.Request) []proxy.Request {
	for len(steps) > 0 && !slices.Contains([]string{"pods", "ippools", "overlappingrangeipreservations"}, steps[len(steps)-1].Resource) {
		steps = steps[:len(steps)-1]
	}
	return steps
}

// confirmation is the number of the first request by which a run looks at the
// owner again. Before, there is nothing that the run could have decided.
func confirmation(t *testing.T, steps []proxy.Request) int {
	t.Helper()
	for _, r := range steps {
		if r.String() == "get pods" {
			return r.Number
		}
	}
	t.Fatalf("no look at the owner among %v", steps)
	return 0
}

// visit lets the pod come back when the run is about to make its nth request,
// and lets the ADD write some requests later, but before the last one or else after
// the run. It reports whether that was so.
func (s *scene) visit(t *testing.T, n, later, last int) (over bool) {
	t.Helper()
	s.wipe(t, "web-0")
	s.put(t, network.Range, map[int]string{1: "web-0"})
	var v *visitor
	over = true
	s.toReaper.Before(proxy.Any, func(_ context.Context, r proxy.Request) proxy.Action {
		if r.Number == n {
			v = s.comes(t, "web-0")
		}
		if r.Number == n+later && r.Number <= last {
			v.writes()
			over = false
		}
		return proxy.Pass()
	})
	s.run(t, reap.ExitDone, releaseNow)
	if v == nil {
		v = s.comes(t, "web-0")
	}
	if over {
		v.writes()
	}
	if v.err != nil {
		t.Fatal(v.err)
	}
	s.checkWhole(t, network, "web-0", newSandbox, v.ip)

	has := s.store(t)
	s.converge(t, releaseNow)
	s.checkStore(t, has)
	s.dies(t, "web-0")
	s.converge(t, releaseNow)
	s.checkStore(t, store{})
	return over
}

// Where many are due, owners are looked at by one listing of all pods, which
// is up to two seconds old at a write. A pod that comes back behind it is
// still found, before its allocation goes (promise 4).
func TestPodThatComesBackBehindASharedListingKeepsItsAddress(t *testing.T) {
	s := newScene(t)
	s.pod(t, "bystander")
	ip := s.leak(t, "web-0")
	for i := range 60 {
		s.reserve(t, fmt.Sprintf("10.2.0.%d", i+1), s.ref(fmt.Sprintf("gone-%d", i)))
	}
	burial := func(r proxy.Request) bool {
		return r.String() == "patch overlappingrangeipreservations" && r.Name == ip
	}
	var v *visitor
	s.toReaper.Before(proxy.Nth(1, burial), func(context.Context, proxy.Request) proxy.Action {
		v = s.comes(t, "web-0")
		v.writes()
		return proxy.Pass()
	})
	result := s.run(t, reap.ExitDone, releaseNow+"limits: {maxFraction: 1}\n")
	if lists := s.toReaper.Counts()["list pods"]; lists < 2 {
		t.Fatalf("%d listings of pods: owners were not looked at by listing", lists)
	}
	if v.err != nil {
		t.Fatal(v.err)
	}
	s.checkWhole(t, network, "web-0", newSandbox, v.ip)
	if got := outcomes(result.Report)[allocationBackend+" "+ip]; got == "released" {
		t.Errorf("outcome of the reservation of %s: %s", ip, got)
	}
	s.checkStore(t, store{
		poolName(network.Range) + " " + v.ip: s.ref("web-0") + " " + newSandbox, v.ip: s.ref("web-0"),
	})
}

// A allocation goes while the run is about to release it, by the late DEL of
// its own sandbox, and a pod in an overlapping range is given the address. The
// run deletes and changes nothing of what that pod has (promise 1): it is
// another object under the same name.
func TestAllocationThatIsGivenToAnotherPodMeanwhileStays(t *testing.T) {
	s := newScene(t)
	s.pod(t, "bystander")
	steps := s.requests(t)
	for n := confirmation(t, steps); n <= len(steps); n++ {
		t.Run(fmt.Sprintf("before %d %s", n, steps[n-1]), func(t *testing.T) {
			s.wipe(t, "neighbour")
			ip := s.leak(t, "web-0")
			other := plugin.Network{Range: "10.1.0.0/16", RangeStart: ip, RangeEnd: ip}
			s.toReaper.Before(func(r proxy.Request) bool { return r.Number == n },
				func(context.Context, proxy.Request) proxy.Action {
					s.removeEntry(t, network, ip) // as the DEL does,
					s.deleteAllocation(t, ip)     // by name alone
					s.pod(t, "neighbour")
					if _, err := s.add(t.Context(), other, "neighbour", newSandbox); err != nil {
						t.Error(err)
					}
					return proxy.Pass()
				})
			s.run(t, reap.ExitDone, releaseNow)
			s.checkWhole(t, other, "neighbour", newSandbox, ip)
		})
	}
}

// deleteReservation deletes a allocation as the plugin does: by its name,
// whatever it is by then.
func (s *scene) deleteAllocation(t *testing.T, ip string) {
	t.Helper()
	err := s.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace).
		Delete(t.Context(), ip, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// What this program is careful about: the API server itself, asked to delete a
// allocation only if it is the very object and version that was confirmed,
// deletes the allocation of a live pod, and a second pod gets its address.
func TestNaiveDeleteLosesALiveAllocation(t *testing.T) {
	s := newScene(t)
	ctx := t.Context()
	ip := s.leak(t, "web-0")
	allocations := s.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace)

	// The pool's entry is released, as any reaper does it. Then the naive one
	// confirms: the pod is gone, and this is its allocation.
	s.removeEntry(t, network, ip)
	if _, err := s.Kube.CoreV1().Pods(s.namespace).Get(ctx, "web-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("get pod: %v, want not found", err)
	}
	confirmed, err := allocations.Get(ctx, ip, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	s.pod(t, "web-0")
	if got := s.mustAdd(t, network, "web-0", newSandbox); got != ip {
		t.Fatalf("ADD gave %s, want %s again", got, ip)
	}
	s.checkWhole(t, network, "web-0", newSandbox, ip)

	err = allocations.Delete(ctx, ip, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: &confirmed.UID, ResourceVersion: &confirmed.ResourceVersion,
	}})
	if err != nil {
		t.Fatalf("delete: %v, want that the preconditions hold", err)
	}
	twice, err := s.add(ctx, overlapping(ip), "stranger", "sandbox-stranger")
	if err != nil || twice != ip {
		t.Errorf("ADD in an overlapping range: %s, %v, want %s, which is in use", twice, err, ip)
	}
}

// removeEntry takes an address out of the pool.
func (s *scene) removeEntry(t *testing.T, n plugin.Network, ip string) {
	t.Helper()
	pools := s.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace)
	pool, err := pools.Get(t.Context(), poolName(n.Range), metav1.GetOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	for key := range pool.Spec.Allocations {
		if address(t, pool.Spec.Range, key) == ip {
			delete(pool.Spec.Allocations, key)
		}
	}
	if _, err := pools.Update(t.Context(), pool, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}
