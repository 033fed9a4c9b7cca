package main

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// checkPage is how many objects are read at a time.
const checkPage = 500

// check reads pools and overlapping reservations through the API server. It returns an
// error unless exactly the live ones are there, or all of them if want is the total.
func (g *stage) check(ctx context.Context, want int) error {
	expected := func(e entry) bool { return want == g.size.total() || !e.stale() }
	entries, err := g.checkPools(ctx, expected)
	if err != nil {
		return err
	}
	reservations, err := g.checkReservations(ctx, expected)
	if err != nil {
		return err
	}
	if entries != want || reservations != want {
		return fmt.Errorf("there are %d entries and %d overlapping reservations, want %d of both", entries, reservations, want)
	}
	return nil
}

// checkPools counts the entries of the pools. An entry that is not expected is an error.
func (g *stage) checkPools(ctx context.Context, expected func(entry) bool) (int, error) {
	entries := 0
	api := g.cluster.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace)
	for pool := range g.size.pools() {
		p, err := api.Get(ctx, poolName(pool), metav1.GetOptions{})
		if err != nil {
			return 0, err
		}
		for key, allocation := range p.Spec.Allocations {
			offset, err := strconv.Atoi(key)
			e := entry(pool*poolEntries + offset - 1)
			if err != nil || allocation.PodRef != e.podRef() || !expected(e) {
				return 0, fmt.Errorf("pool %s has the entry %s of %s", p.Name, key, allocation.PodRef)
			}
		}
		entries += len(p.Spec.Allocations)
	}
	return entries, nil
}

// checkReservations counts the overlapping reservations. One that is not expected is an
// error.
func (g *stage) checkReservations(ctx context.Context, expected func(entry) bool) (int, error) {
	want := map[string]entry{}
	for e := range entry(g.size.total()) {
		if expected(e) {
			want[e.ip().String()] = e
		}
	}
	api := g.cluster.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace)
	count := 0
	for options := (metav1.ListOptions{Limit: checkPage}); ; {
		page, err := api.List(ctx, options)
		if err != nil {
			return 0, err
		}
		for _, r := range page.Items {
			if e, ok := want[r.Name]; !ok || r.Spec.PodRef != e.podRef() {
				return 0, fmt.Errorf("there is the overlapping reservation %s of %s", r.Name, r.Spec.PodRef)
			}
		}
		count += len(page.Items)
		if options.Continue = page.Continue; options.Continue == "" {
			return count, nil
		}
	}
}

// checkPods returns an error unless the API server has all pods and can read them.
func (g *stage) checkPods(ctx context.Context) error {
	page, err := g.cluster.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: checkPage})
	if err != nil {
		return err
	}
	count := len(page.Items)
	if page.RemainingItemCount != nil {
		count += int(*page.RemainingItemCount)
	}
	if count != int(g.size) || page.Items[0].Annotations[cluster.NetworkStatusAnnotation] == "" {
		return fmt.Errorf("the API server has %d pods, want %d with a network status", count, g.size)
	}
	return nil
}

// released counts what a run has released that was stopped. It returns an error if a live
// entry or overlapping reservation is gone.
func (g *stage) released(ctx context.Context) (int, error) {
	all := func(entry) bool { return true }
	entries, err := g.checkPools(ctx, all)
	if err != nil {
		return 0, err
	}
	reservations, err := g.checkReservations(ctx, all)
	if err != nil {
		return 0, err
	}
	if entries < int(g.size) || reservations < int(g.size) {
		return 0, fmt.Errorf("there are %d entries and %d overlapping reservations of %d pods", entries, reservations, g.size)
	}
	return 2*g.size.total() - entries - reservations, nil
}
