package main

import (
	"context"
	"fmt"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
)

// A poolSize says how much there is.
type poolSize struct{ pools, live, stale int }

// check refuses sizes that make no sense, or addresses beyond a /16.
func (s poolSize) check() error {
	if s.pools < 1 || s.pools > 200 || s.live < 1 || s.stale < 1 || (s.live+s.stale)/s.pools > 60_000 {
		return fmt.Errorf("%d pools with %d live and %d stale entries: want 1 to 200 pools, of at most 60,000 entries", s.pools, s.live, s.stale)
	}
	return nil
}

// A poolStock is what whereabouts has stored in a cluster.
type poolStock struct {
	*cluster.Cluster
	size poolSize
}

// An entry is one address in one pool.
type entry struct {
	pool, offset int
	pod          string
}

// entries are all that there are, the live ones first.
func (s poolStock) entries() []entry {
	var all []entry
	for i := range s.size.live + s.size.stale {
		e := entry{pool: i % s.size.pools, offset: i/s.size.pools + 1, pod: fmt.Sprintf("live-%d", i)}
		if i >= s.size.live {
			e.pod = fmt.Sprintf("gone-%d", i)
		}
		all = append(all, e)
	}
	return all
}

func (e entry) ip() string { return fmt.Sprintf("10.%d.%d.%d", e.pool+1, e.offset>>8, e.offset&0xff) }

// fill writes the pods, and then everything else.
func (s poolStock) fill(ctx context.Context) error {
	if err := s.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	live := s.entries()[:s.size.live]
	err := parallel.Each(writers, live, func(_ int, e entry) error {
		_, err := s.CreatePod(ctx, namespace, e.pod,
			cluster.Networks(cluster.Attached(namespace+"/net", "net1", e.ip())))
		return err
	})
	if err != nil {
		return err
	}
	return s.leak(ctx)
}

// leak writes what is missing of pools and allocations.
func (s poolStock) leak(ctx context.Context) error {
	client := s.Whereabouts.WhereaboutsV1alpha1()
	pools := make([]*v1alpha1.IPPool, s.size.pools)
	for i := range pools {
		pools[i] = &v1alpha1.IPPool{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("10.%d.0.0-16", i+1)},
			Spec:       v1alpha1.IPPoolSpec{Range: fmt.Sprintf("10.%d.0.0/16", i+1), Allocations: map[string]v1alpha1.IPAllocation{}},
		}
	}
	for _, e := range s.entries() {
		pools[e.pool].Spec.Allocations[fmt.Sprint(e.offset)] = v1alpha1.IPAllocation{
			ContainerID: "sandbox-" + e.pod, PodRef: namespace + "/" + e.pod, IfName: "net1",
		}
	}
	err := parallel.Each(writers, pools, func(_ int, pool *v1alpha1.IPPool) error {
		api := client.IPPools(cluster.PoolNamespace)
		err := api.Delete(ctx, pool.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		_, err = api.Create(ctx, pool, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return parallel.Each(writers, s.entries(), func(_ int, e entry) error {
		_, err := client.OverlappingRangeIPReservations(cluster.PoolNamespace).Create(ctx,
			&v1alpha1.OverlappingRangeIPReservation{
				ObjectMeta: metav1.ObjectMeta{Name: e.ip()},
				Spec:       v1alpha1.OverlappingRangeIPReservationSpec{PodRef: namespace + "/" + e.pod, IfName: "net1"},
			}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// check returns an error unless what is left is what is live.
func (s poolStock) check(ctx context.Context) error {
	client := s.Whereabouts.WhereaboutsV1alpha1()
	pools, err := client.IPPools("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	entries := 0
	for _, pool := range pools.Items {
		entries += len(pool.Spec.Allocations)
	}
	allocations, err := client.OverlappingRangeIPReservations("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if entries != s.size.live || len(allocations.Items) != s.size.live {
		return fmt.Errorf("%d entries and %d reservations are left, want %d of both", entries, len(allocations.Items), s.size.live)
	}
	return nil
}
