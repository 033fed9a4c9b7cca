package whereabouts_test

import (
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// client returns a client for Whereabouts' API group.
func (f *fixture) client() rest.Interface {
	return f.Whereabouts.WhereaboutsV1alpha1().RESTClient()
}

// fill writes a pool and its reservations, as the plugin would. The owners are the pods, by their
// keys in the pool.
func (f *fixture) fill(cidr string, owners map[int]string) {
	f.Helper()
	allocations := map[string]map[string]string{}
	for offset, pod := range owners {
		key := strconv.Itoa(offset)
		allocations[key] = map[string]string{"id": "sandbox-" + pod, "podref": ref(pod), "ifname": "net1"}
		f.writeReservation(kit.Address(cidr, key), ref(pod))
	}
	f.writePool(poolName(cidr), cidr, text(allocations))
}

// writePool writes a pool as it is given.
func (f *fixture) writePool(name, cidr, allocations string) {
	f.Helper()
	f.write("ippools", fmt.Sprintf(`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool",
		"metadata":{"name":%q},"spec":{"range":%q,"allocations":%s}}`, name, cidr, allocations))
}

// writeReservation writes an overlapping-range reservation as the plugin does.
func (f *fixture) writeReservation(name, podRef string) {
	f.Helper()
	f.write("overlappingrangeipreservations", fmt.Sprintf(`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1",
		"kind":"OverlappingRangeIPReservation","metadata":{"name":%q},"spec":{"podref":%q,"ifname":"net1"}}`, name, podRef))
}

// write creates an object from its JSON in the namespace of the pools.
func (f *fixture) write(resource, object string) {
	f.Helper()
	f.must(f.client().Post().Namespace(cluster.PoolNamespace).Resource(resource).
		Param("fieldValidation", "Ignore").Body([]byte(object)).Do(f.Context()).Error())
}

// patch patches an object in the namespace of the pools.
func (f *fixture) patch(resource, name string, kind types.PatchType, body string) {
	f.Helper()
	f.must(f.client().Patch(kind).Namespace(cluster.PoolNamespace).Resource(resource).Name(name).
		Body([]byte(body)).Do(f.Context()).Error())
}

// removeEntry removes an address from a pool, as a DEL does. It does not end the test.
func (f *fixture) removeEntry(cidr, ip string) {
	f.Helper()
	pools := f.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace)
	pool, err := pools.Get(f.Context(), poolName(cidr), metav1.GetOptions{})
	if err != nil {
		f.Error(err)
		return
	}
	for key := range pool.Spec.Allocations {
		if kit.Address(pool.Spec.Range, key) == ip {
			delete(pool.Spec.Allocations, key)
		}
	}
	if _, err := pools.Update(f.Context(), pool, metav1.UpdateOptions{}); err != nil {
		f.Error(err)
	}
}

// deleteReservation deletes a reservation as the plugin does: by its name,
// whichever object that is by then. It does not end the test.
func (f *fixture) deleteReservation(ip string) {
	f.Helper()
	err := f.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace).
		Delete(f.Context(), ip, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		f.Error(err)
	}
}

// wantAddresses fails the test unless the addresses are the wanted ones.
func (f *fixture) wantAddresses(got []string, want ...string) {
	f.Helper()
	if !slices.Equal(got, want) {
		f.Errorf("addresses %v, want %v", got, want)
	}
}
