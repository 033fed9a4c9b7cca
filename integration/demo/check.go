package main

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// allocations returns the pool's entries.
func (d *demo) allocations(ctx context.Context) (map[string]v1alpha1.IPAllocation, error) {
	got, err := d.cluster.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).
		Get(ctx, pool, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get pool: %w", err)
	}
	return got.Spec.Allocations, nil
}

// checkOffsets fails unless the pool has entries at exactly these offsets.
func (d *demo) checkOffsets(ctx context.Context, want ...string) error {
	entries, err := d.allocations(ctx)
	if err != nil {
		return err
	}
	if got := slices.Sorted(maps.Keys(entries)); !slices.Equal(got, want) {
		return fmt.Errorf("the pool holds offsets %v, want %v", got, want)
	}
	return nil
}

// offset returns the key of an address in the pool.
func offset(ip netip.Addr) string {
	base := netip.MustParsePrefix(network.Range).Addr()
	return fmt.Sprint(ip.As4()[3] - base.As4()[3])
}
