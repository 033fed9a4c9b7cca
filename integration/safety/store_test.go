package safety_test

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// What a backend is called in policies and reports.
const (
	poolBackend       = "whereabouts"
	allocationBackend = "overlapping"
	blockBackend      = "calico"
)

// A store is what whereabouts has stored: who has an address, and by which
// sandbox, under the pool and the address; and who has reserved one across
// ranges, under the address alone.
type store map[string]string

// store reads what is stored now.
func (s *scene) store(t testing.TB) store {
	t.Helper()
	client := s.Whereabouts.WhereaboutsV1alpha1()
	pools, err := client.IPPools("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return nil
	}
	all := store{}
	for _, pool := range pools.Items {
		for key, a := range pool.Spec.Allocations {
			all[pool.Name+" "+address(t, pool.Spec.Range, key)] = a.PodRef + " " + a.ContainerID
		}
	}
	allocations, err := client.OverlappingRangeIPReservations("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, r := range allocations.Items {
		all[r.Name] = r.Spec.PodRef
	}
	return all
}

// address is what a pool's key stands for.
func address(t testing.TB, cidr, key string) string {
	t.Helper()
	prefix, err := netip.ParsePrefix(cidr)
	offset, ok := new(big.Int).SetString(key, 10)
	if err != nil || !ok {
		t.Errorf("range %q with key %q", cidr, key)
		return ""
	}
	base := prefix.Addr().AsSlice()
	ip, _ := netip.AddrFromSlice(offset.Add(offset, new(big.Int).SetBytes(base)).FillBytes(make([]byte, len(base))))
	return ip.String()
}

// without returns the store without what the pods have.
func (st store) without(refs ...string) store {
	rest := store{}
	for key, owner := range st {
		ref, _, _ := strings.Cut(owner, " ")
		if !slices.Contains(refs, ref) {
			rest[key] = owner
		}
	}
	return rest
}

// checkStore compares what is stored with what ought to be.
func (s *scene) checkStore(t testing.TB, want store) {
	t.Helper()
	if diff := cmp.Diff(want, s.store(t)); diff != "" {
		t.Errorf("store (-want +got):\n%s", diff)
	}
}

// poolName is how the plugin names the pool of an unnamed network.
func poolName(cidr string) string { return strings.ReplaceAll(cidr, "/", "-") }

// put writes a pool, and allocations beside it, as the plugin would have. The
// allocations map an offset to the pod that has it.
func (s *scene) put(t testing.TB, cidr string, allocations map[int]string) {
	t.Helper()
	client := s.Whereabouts.WhereaboutsV1alpha1()
	pool := &v1alpha1.IPPool{
		ObjectMeta: metav1.ObjectMeta{Name: poolName(cidr)},
		Spec:       v1alpha1.IPPoolSpec{Range: cidr, Allocations: map[string]v1alpha1.IPAllocation{}},
	}
	for offset, pod := range allocations {
		key := fmt.Sprint(offset)
		pool.Spec.Allocations[key] = v1alpha1.IPAllocation{
			ContainerID: "sandbox-" + pod, PodRef: s.ref(pod), IfName: "net1",
		}
		s.reserve(t, address(t, cidr, key), s.ref(pod))
	}
	if _, err := client.IPPools(cluster.PoolNamespace).Create(t.Context(), pool, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// reserve writes a allocation as the plugin would have.
func (s *scene) reserve(t testing.TB, ip, ref string) {
	t.Helper()
	allocation := &v1alpha1.OverlappingRangeIPReservation{
		ObjectMeta: metav1.ObjectMeta{Name: ip},
		Spec:       v1alpha1.OverlappingRangeIPReservationSpec{PodRef: ref, IfName: "net1"},
	}
	_, err := s.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace).
		Create(t.Context(), allocation, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// wipe removes what the last part of a test has stored: pools, allocations,
// the ledger, and the pods that it names.
func (s *scene) wipe(t testing.TB, pods ...string) {
	t.Helper()
	s.toReaper.Reset()
	s.toPlugin.Reset()
	client := s.Whereabouts.WhereaboutsV1alpha1()
	errs := []error{
		client.IPPools(cluster.PoolNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
		client.OverlappingRangeIPReservations(cluster.PoolNamespace).
			DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
		s.forget(t),
	}
	for _, pod := range pods {
		errs = append(errs, s.DeletePod(t.Context(), s.namespace, pod))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// ledger is the name of the ConfigMap in which runs remember.
const ledger = "ip-reaper-ledger"

// forget removes the ledger.
func (s *scene) forget(t testing.TB) error {
	t.Helper()
	err := s.Kube.CoreV1().ConfigMaps(s.ledgerIn).Delete(t.Context(), ledger, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// checkWhole fails the test unless the pod has all that its ADD gave it: the
// entry in the pool, by its sandbox; the allocation that names it; and
// thereby the address, which a real ADD in a range over the same addresses is
// not given (promise 1).
func (s *scene) checkWhole(t *testing.T, n plugin.Network, pod, sandbox, ip string) {
	t.Helper()
	st := s.store(t)
	if got, want := st[poolName(n.Range)+" "+ip], s.ref(pod)+" "+sandbox; got != want {
		t.Errorf("%s has %s by its ADD; the pool's entry is %q, want %q", pod, ip, got, want)
	}
	if got, want := st[ip], s.ref(pod); got != want {
		t.Errorf("%s has %s by its ADD; the reservation is %q, want %q", pod, ip, got, want)
	}
	s.checkTaken(t, ip)
}

// overlapping is a network over all addresses that the tests use, narrowed to
// one of them.
func overlapping(ip string) plugin.Network {
	return plugin.Network{Name: "other", Range: "10.0.0.0/8", RangeStart: ip, RangeEnd: ip}
}

// checkTaken fails the test if a real ADD in an overlapping range is given the
// address.
func (s *scene) checkTaken(t *testing.T, ip string) {
	t.Helper()
	_, err := s.add(t.Context(), overlapping(ip), "stranger", "sandbox-stranger")
	var refused *plugin.Error
	switch {
	case err == nil:
		t.Errorf("a pod in an overlapping range was given %s, which is in use: two pods have it", ip)
	case !errors.As(err, &refused) || !strings.Contains(refused.Msg, "Could not allocate IP in range"):
		t.Errorf("ADD for %s in an overlapping range: %v, want that none is left", ip, err)
	}
}

// outcomes are what the report says became of the entries, by backend and
// address.
func outcomes(r *reap.Report) map[string]string {
	all := make(map[string]string, len(r.Entries))
	for _, e := range r.Entries {
		all[e.Backend+" "+e.IP] = e.Outcome
	}
	return all
}

// checkTrue fails the test unless the report tells what the store holds: what
// it calls released is gone, and what was there and is gone it does not call
// kept (promise 7).
func (s *scene) checkTrue(t testing.TB, r *reap.Report) {
	t.Helper()
	st := s.store(t)
	for _, e := range r.Entries {
		key := e.IP
		if e.Backend == poolBackend {
			_, name, _ := strings.Cut(e.Pool, "/")
			key = name + " " + e.IP
		}
		_, stored := st[key]
		switch e.Outcome {
		case "released":
			if stored {
				t.Errorf("the report says that %s %s was released; the store has it: %q", e.Backend, e.IP, st[key])
			}
		case "failed":
			if e.Error == "" {
				t.Errorf("the report does not say why %s %s failed", e.Backend, e.IP)
			}
		default:
			if !stored {
				t.Errorf("the report says that %s %s was %s; the store does not have it", e.Backend, e.IP, e.Outcome)
			}
		}
	}
}

// putEntries writes a pool with many entries of pods that are gone, and no
// allocations.
func (s *scene) putEntries(t testing.TB, cidr string, n int) {
	t.Helper()
	pool := &v1alpha1.IPPool{
		ObjectMeta: metav1.ObjectMeta{Name: poolName(cidr)},
		Spec:       v1alpha1.IPPoolSpec{Range: cidr, Allocations: make(map[string]v1alpha1.IPAllocation, n)},
	}
	for i := range n {
		pool.Spec.Allocations[fmt.Sprint(i+1)] = v1alpha1.IPAllocation{
			ContainerID: "sandbox", PodRef: s.ref(fmt.Sprintf("gone-%d", i)), IfName: "net1",
		}
	}
	_, err := s.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).
		Create(t.Context(), pool, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// network is the network of the pods, and newSandbox the sandbox of one that
// came back.
var network = plugin.Network{Range: "10.1.0.0/24"}

const (
	newSandbox = "sandbox-2"
	tombstone  = "_ip-reaper/_released" // stands in a reservation while it is being released
)
