package reaper

import (
	"context"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// endpointsOf reads the endpoints of the pods of allocations, from the backends that have some.
func endpointsOf(ctx context.Context, backends []ipam.Backend, as []*ipam.Allocation) map[ipam.PodRef]ipam.Endpoint {
	endpoints := make(map[ipam.PodRef]ipam.Endpoint)
	for _, b := range backends {
		endpointer, ok := b.(ipam.Endpointer)
		if !ok {
			continue
		}
		var mine []*ipam.Allocation
		for _, a := range as {
			if a.Backend == b.Name() {
				mine = append(mine, a)
			}
		}
		if len(mine) == 0 { // a datastore is not opened for nothing
			continue
		}
		for i, e := range endpointer.Endpoints(ctx, mine) {
			endpoints[mine[i].Owner.Pod] = e
		}
	}
	return endpoints
}

// tellEndpoints returns the census with the endpoints that may tell which sandbox of a pod is the last
// one. Those that cannot be read keep what they may name, and are a warning.
func (r *run) tellEndpoints(ctx context.Context, inv ipam.Inventory, c census.Census) census.Census {
	ctx, cancel := context.WithTimeout(ctx, findingsTimeout)
	defer cancel()
	endpoints := endpointsOf(ctx, r.Backends, judge.ToldByEndpoints(inv, c))
	for ref, e := range endpoints {
		if e.Err != nil {
			r.warn(fmt.Sprintf("what may have been replaced is kept: the endpoint of pod %s, and maybe of others, could not be read: %s", ref, printable.Error(e.Err)))
			break
		}
	}
	return c.WithEndpoints(endpoints)
}

// readEndpoints adds to the looks at pods the endpoints on which decisions on their allocations rest.
func (c *Confirmer) readEndpoints(ctx context.Context, orphans []judge.Orphan, looks map[ipam.PodRef]census.Reading) {
	for ref, e := range endpointsOf(ctx, c.backends, judge.ByEndpoints(orphans)) {
		l := looks[ref]
		if l.Endpoint = e; e.Err != nil && l.Err == nil {
			l.Presence, l.Err = census.Unknown, fmt.Errorf("read the endpoint of pod %s: %w", ref, lookError(ctx, e.Err))
		}
		looks[ref] = l
	}
}
