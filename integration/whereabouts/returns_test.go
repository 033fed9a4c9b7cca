package whereabouts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// network is the network of the pods that come back. The networks that overlapping returns cover
// its addresses.
var network = plugin.Network{Range: "10.1.0.0/24"}

// newSandbox is the sandbox of a pod that came back.
const newSandbox = "sandbox-new"

// leak writes the first allocation of the network, for a pod that is gone.
func (f *fixture) leak(pod string) (ip string) {
	f.Helper()
	f.fill(network.Range, map[int]string{1: pod})
	return "10.1.0.1"
}

// A heldAdd is the ADD of a pod that came back under its name, held between the plugin's read and
// its write of the pool.
type heldAdd struct {
	gate *proxy.Gate
	done chan struct{}
	ip   string
	err  error
}

// comesBack creates the pod and starts its ADD. It returns when the plugin has read everything and
// is about to write the pool.
func (f *fixture) comesBack(pod string) *heldAdd {
	f.Helper()
	f.gone(pod) // if it is there, on the network of its node
	f.pod(pod, pending)
	return f.holdAdd(network, pod)
}

// holdAdd starts the ADD of a pod's new sandbox. It returns when the plugin has read everything and is about
// to write the pool.
func (f *fixture) holdAdd(n plugin.Network, pod string) *heldAdd {
	f.Helper()
	h := &heldAdd{gate: proxy.NewGate(), done: make(chan struct{})}
	f.toPlugin.Before(proxy.On("patch ippools"), h.gate.Hook)
	go func() {
		defer close(h.done)
		h.ip, h.err = f.addOne(n, pod, newSandbox)
	}()
	select {
	case <-h.gate.Arrived():
	case <-h.done:
	}
	return h
}

// write lets the ADD write, and waits until it ends.
func (h *heldAdd) write() {
	h.gate.Open()
	<-h.done
}

// wantWhole fails the test unless the pod has everything that its ADD gave it: the entry in the
// pool, with its sandbox; the reservation that names it; and thus the address, which a real ADD in
// an overlapping range does not get (promise 1).
func (f *fixture) wantWhole(n plugin.Network, pod, sandbox, ip string) {
	f.Helper()
	f.wantWholeIn(poolName(n.Range), n.NetworkName, pod, sandbox, ip)
}

// wantWholeIn is wantWhole for a pool of any network.
func (f *fixture) wantWholeIn(pool, network, pod, sandbox, ip string) {
	f.Helper()
	owners, reservation := f.owners(), ip
	if network != "" {
		reservation = network + "-" + ip
	}
	if got, want := owners[pool+" "+ip], ref(pod)+" "+sandbox; got != want {
		f.Errorf("%s has %s by its ADD; the entry in %s is %q, want %q", pod, ip, pool, got, want)
	}
	if got, want := owners[reservation], ref(pod); got != want {
		f.Errorf("%s has %s by its ADD; the reservation is %q, want %q", pod, ip, got, want)
	}
	other := overlapping(ip)
	other.NetworkName = network
	_, err := f.addOne(other, "stranger", "sandbox-stranger")
	var refused *plugin.Error
	switch {
	case err == nil:
		f.Errorf("a pod in an overlapping range was given %s, which is in use: two pods have it", ip)
	case !errors.As(err, &refused) || !strings.Contains(refused.Msg, "Could not allocate IP in range"):
		f.Errorf("ADD for %s in an overlapping range: %v, want that none is left", ip, err)
	}
}

// overlapping returns a network that covers all addresses that the tests use, narrowed to one.
func overlapping(ip string) plugin.Network {
	return plugin.Network{Name: "other", Range: "10.0.0.0/8", RangeStart: ip, RangeEnd: ip}
}

// requests returns the requests of an undisturbed run that releases a leak, as its proxy saw them,
// and the number of the first one that looks at the owner again. Before that, the run cannot have
// decided anything.
func (f *fixture) requests(leak func(), args ...string) (steps []proxy.Request, first int) {
	f.Helper()
	f.clear("web-0")
	leak()
	f.mustReap(reap.ExitDone, "", args...)
	f.wantOwners(nothing)
	steps = f.toReaper.Requests()
	for _, r := range steps {
		if r.String() == "get pods" {
			return steps, r.Number
		}
	}
	f.Fatalf("no look at the owner among %v", steps)
	return nil, 0
}

// leakToHost writes the first allocation of the network, for an earlier pod of a name that a pod on the
// network of its node has now. A run saw that an hour ago.
func (f *fixture) leakToHost(pod string) {
	f.Helper()
	f.leak(pod)
	f.pod(pod, func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	f.mustReap(reap.ExitDone, "")
	f.must((reap.Memory{Cluster: f.Cluster, Namespace: cluster.PoolNamespace}).Age(f.Context(), time.Hour))
	f.toReaper.Reset()
}

// storeWrite reports whether a step writes a store.
func storeWrite(r proxy.Request) bool {
	return r.Mutating() && (r.Resource == "ippools" || r.Resource == "overlappingrangeipreservations")
}

// untilReleased returns the steps without the last ones, which concern the run's journal and lock:
// what happens between those does not affect a store.
func untilReleased(steps []proxy.Request) []proxy.Request {
	for len(steps) > 0 && !slices.Contains([]string{"pods", "ippools", "overlappingrangeipreservations"}, steps[len(steps)-1].Resource) {
		steps = steps[:len(steps)-1]
	}
	return steps
}

// A pod comes back under its name while the run is at any of its steps, and its ADD writes at that
// step or at any later one. The pod keeps what its ADD got (promises 1 and 4), no address that it
// left behind stays blocked, and no run fails.
func TestEveryStepAPodComesBackAt(t *testing.T) {
	for name, leak := range map[string]func(f *fixture){
		"none has its name":                           func(f *fixture) { f.leak("web-0") },
		"one on the network of its node has its name": func(f *fixture) { f.leakToHost("web-0") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.comebacks(func() { leak(f) })
		})
	}
}

// comebacks lets the pod come back at each step.
func (f *fixture) comebacks(leak func()) {
	f.Helper()
	steps, first := f.requests(leak)
	steps = untilReleased(steps)
	end := len(steps) + 1
	for n := first; n <= end; n++ {
		where := "after the release"
		if n < end {
			where = fmt.Sprintf("before %d %s", n, steps[n-1])
		}
		for later := 0; n+later <= end+1; later++ {
			sampled := n == first || n == end || storeWrite(steps[n-1])
			if testing.Short() && (!sampled || later > 0 && n+later <= end) {
				continue
			}
			f.each(fmt.Sprintf("%s, and the ADD writes %d later", where, later), func() { f.comeback(leak, n, later, end) })
		}
	}
}

// comeback lets the pod come back before the run's request n, and its ADD write before request
// n+later, or after the run if that is beyond the end.
func (f *fixture) comeback(leak func(), n, later, end int, args ...string) {
	f.Helper()
	f.clear("web-0")
	leak()
	var h *heldAdd
	written := false
	f.toReaper.Before(proxy.Any, func(_ context.Context, r proxy.Request) proxy.Action {
		if r.Number == n {
			h = f.comesBack("web-0")
		}
		if r.Number == n+later && r.Number <= end {
			h.write()
			written = true
		}
		return proxy.Pass()
	})
	f.mustReap(reap.ExitDone, "", args...)
	if h == nil {
		h = f.comesBack("web-0")
	}
	if !written {
		h.write()
	}
	f.must(h.err)
	f.wantWhole(network, "web-0", newSandbox, h.ip)

	has := f.owners()
	f.converge()
	f.wantOwners(has)
	f.gone("web-0")
	f.converge()
	f.wantOwners(nothing)
}

// While the run is about to release a reservation, its own sandbox's late DEL deletes it, and a pod
// in an overlapping range gets the address. The run deletes and changes nothing that this pod has
// (promise 1): it is another object with the same name.
func TestEveryStepAReservationIsGivenAwayAt(t *testing.T) {
	f := newFixture(t)
	steps, first := f.requests(func() { f.leak("web-0") })
	for n := first; n <= len(steps); n++ {
		if testing.Short() && !storeWrite(steps[n-1]) {
			continue
		}
		f.each(fmt.Sprintf("before %d %s", n, steps[n-1]), func() {
			f.clear("neighbour")
			ip := f.leak("web-0")
			other := plugin.Network{Range: "10.1.0.0/16", RangeStart: ip, RangeEnd: ip}
			f.toReaper.Before(func(r proxy.Request) bool { return r.Number == n },
				func(context.Context, proxy.Request) proxy.Action {
					f.removeEntry(network.Range, ip) // as the DEL does,
					f.deleteReservation(ip)          // by name alone
					f.pod("neighbour", pending)
					if _, err := f.addOne(other, "neighbour", newSandbox); err != nil {
						f.Error(err)
					}
					return proxy.Pass()
				})
			f.mustReap(reap.ExitDone, "")
			f.wantWhole(other, "neighbour", newSandbox, ip)
		})
	}
}
