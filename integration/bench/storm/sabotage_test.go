package main

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// removeEntry removes what the victim's pool has of it.
func removeEntry(ctx context.Context, s *storm, victim *sandbox) error {
	w := s.ipam.(*whereabouts)
	in, network := w.of(victim.place)
	patch, err := json.Marshal([]map[string]string{
		{"op": "remove", "path": fmt.Sprintf("/spec/allocations/%d", victim.ip.As4()[3])},
	})
	if err != nil {
		return err
	}
	_, err = s.cluster.Whereabouts.WhereaboutsV1alpha1().IPPools(in.namespace).Patch(ctx, poolName(network.Range),
		types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

// removeReservation deletes the victim's reservation.
func removeReservation(ctx context.Context, s *storm, victim *sandbox) error {
	in, _ := s.ipam.(*whereabouts).of(victim.place)
	return s.cluster.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(in.namespace).
		Delete(ctx, victim.ip.String(), metav1.DeleteOptions{})
}
