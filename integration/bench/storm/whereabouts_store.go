package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit"
)

// The kinds of facts of Whereabouts' store.
const (
	kindEntry       = "pool entry"
	kindReservation = "reservation"
)

// owed implements ipam.
func (w *whereabouts) owed(s *sandbox) map[fact]string {
	return map[fact]string{
		{kindEntry, poolName(w.networks[s.place].Range) + " " + s.ip.String()}: entryOwner(namespace+"/"+s.pod, iface, s.id),
		{kindReservation, s.ip.String()}:                                       namespace + "/" + s.pod,
	}
}

// poolName returns the plugin's name for the pool of an unnamed network.
func poolName(cidr string) string { return strings.ReplaceAll(cidr, "/", "-") }

func entryOwner(podRef, ifname, containerID string) string {
	return podRef + " " + ifname + " " + containerID
}

// The podref and the annotation of a reservation with a tombstone.
const (
	tombstone      = "_ip-reaper/_released"
	specAnnotation = "ip-reaper/spec" // the spec from before
)

// look implements ipam.
func (w *whereabouts) look(ctx context.Context) (view, error) {
	v := view{owners: map[fact]string{}, retiring: map[fact]string{}}
	client := w.cluster.Whereabouts.WhereaboutsV1alpha1()
	pools, err := client.IPPools("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, fmt.Errorf("list pools: %w", err)
	}
	for _, pool := range pools.Items {
		for key, a := range pool.Spec.Allocations {
			v.owners[fact{kindEntry, pool.Name + " " + kit.Address(pool.Spec.Range, key)}] = entryOwner(a.PodRef, a.IfName, a.ContainerID)
		}
	}
	reservations, err := client.OverlappingRangeIPReservations("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, fmt.Errorf("list reservations: %w", err)
	}
	for _, r := range reservations.Items {
		v.owners[fact{kindReservation, r.Name}] = r.Spec.PodRef
		if r.Spec.PodRef == tombstone {
			var before v1alpha1.OverlappingRangeIPReservationSpec
			if err := json.Unmarshal([]byte(r.Annotations[specAnnotation]), &before); err != nil {
				v.broken = append(v.broken, fmt.Sprintf("reservation %s: its spec from before: %v", r.Name, err))
			}
			v.retiring[fact{kindReservation, r.Name}] = before.PodRef
		}
	}
	return v, nil
}
