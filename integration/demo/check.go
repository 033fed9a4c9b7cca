package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
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

// checkOffsets fails unless the pool has entries at just these offsets.
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

// checkReserved fails unless the cluster-wide reservations are just those of the pods.
func (d *demo) checkReserved(ctx context.Context, pods ...*pod) error {
	list, err := d.cluster.Whereabouts.WhereaboutsV1alpha1().
		OverlappingRangeIPReservations(cluster.PoolNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list reservations: %w", err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, r := range list.Items {
		got[r.Name] = r.Spec.PodRef
	}
	for _, a := range pods {
		want[a.ip.String()] = namespace + "/" + a.name
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("reservations by address (-want +got):\n%s", diff)
	}
	return nil
}

// checkRunning fails unless the pods that exist are just these, and each of them shows the
// address that it got.
func (d *demo) checkRunning(ctx context.Context, wanted ...*pod) error {
	list, err := d.cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, p := range list.Items {
		var networks []cluster.NetworkStatus
		if err := json.Unmarshal([]byte(p.Annotations[cluster.NetworkStatusAnnotation]), &networks); err != nil {
			return fmt.Errorf("decode networks of pod %s: %w", p.Name, err)
		}
		for _, n := range networks {
			if n.Interface == iface {
				got[p.Name] = strings.Join(n.IPs, ",")
			}
		}
	}
	for _, a := range wanted {
		want[a.name] = a.ip.String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("addresses by pod (-want +got):\n%s", diff)
	}
	return nil
}

// offset is the key of an address in the pool.
func offset(ip netip.Addr) string {
	base := netip.MustParsePrefix(network.Range).Addr()
	return fmt.Sprint(ip.As4()[3] - base.As4()[3])
}
