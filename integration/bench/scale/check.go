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

// check implements contents. It reads pools and overlapping reservations through the API
// server.
func (g *poolStage) check(ctx context.Context) error {
	released, _, err := g.left(ctx)
	if err == nil && released > 0 {
		err = fmt.Errorf("%d stale entries and overlapping reservations are gone", released)
	}
	return err
}

// left implements contents.
func (g *poolStage) left(ctx context.Context) (released, left int, err error) {
	pools, err := g.poolEntries(ctx)
	if err != nil {
		return 0, 0, err
	}
	reservations, err := g.reservations(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, c := range []counts{pools, reservations} {
		if c.live != int(g.size) {
			return 0, 0, fmt.Errorf("there are %d entries and %d overlapping reservations of %d pods", pools.live, reservations.live, g.size)
		}
		left += c.stale
	}
	return 2*g.size.stale() - left, left, nil
}

// counts has numbers of entries or overlapping reservations.
type counts struct{ live, stale int }

// add counts an entry or its overlapping reservation.
func (c *counts) add(e entry) {
	if e.stale() {
		c.stale++
	} else {
		c.live++
	}
}

// poolEntries counts the entries of the pools. A new entry is an error.
func (g *poolStage) poolEntries(ctx context.Context) (c counts, err error) {
	api := g.cluster.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace)
	for pool := range g.size.pools() {
		p, err := api.Get(ctx, poolName(pool), metav1.GetOptions{})
		if err != nil {
			return c, err
		}
		for key, allocation := range p.Spec.Allocations {
			offset, err := strconv.Atoi(key)
			e := entry(pool*poolEntries + offset - 1)
			if err != nil || allocation.PodRef != e.podRef() {
				return c, fmt.Errorf("pool %s has the entry %s of %s", p.Name, key, allocation.PodRef)
			}
			c.add(e)
		}
	}
	return c, nil
}

// reservations counts the overlapping reservations. A new one is an error, as is a tombstone in a
// live one.
func (g *poolStage) reservations(ctx context.Context) (c counts, err error) {
	byName := map[string]entry{}
	for e := range entry(g.size.total()) {
		byName[e.ip().String()] = e
	}
	api := g.cluster.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace)
	for options := (metav1.ListOptions{Limit: checkPage}); ; {
		page, err := api.List(ctx, options)
		if err != nil {
			return c, err
		}
		for _, r := range page.Items {
			e, ok := byName[r.Name]
			if !ok || !e.stale() && r.Spec.PodRef != e.podRef() {
				return c, fmt.Errorf("there is the overlapping reservation %s of %s", r.Name, r.Spec.PodRef)
			}
			c.add(e)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return c, nil
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
	if count != int(g.size) || page.Items[0].Status.PodIP == "" {
		return fmt.Errorf("the API server has %d pods, want %d with an address", count, g.size)
	}
	return nil
}
