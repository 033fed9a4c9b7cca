package reaper

import (
	"context"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// nothingBack is the hint of a restore whose journal lacks what should be put back.
const nothingBack = "nothing was put back; history --run ID lists what the journal has"

// resolveNodes returns an *InputError if the journal has nothing from a node of the selection.
func (r *restoreCall) resolveNodes() error {
	var nodes []string
	for _, rec := range r.Journal.Records {
		nodes = append(nodes, rec.Owner.Node)
	}
	found := search{where: r.where()}
	for _, name := range r.Selection.Nodes {
		if !slices.Contains(nodes, name) {
			found.miss("node", name, nodes)
		}
	}
	return found.err(nothingBack)
}

// resolvePools finds the pools of the selection among those of the journal. It returns an
// *InputError if the journal has nothing from one of them.
func (r *restoreCall) resolvePools(ctx context.Context, inv ipam.Inventory) error {
	if len(r.Selection.Pools) == 0 {
		return nil
	}
	inv = r.recorded(inv)
	layout, warnings := survey(ctx, r.Backends, inv)
	r.warn(warnings...)
	layout.Networks = slices.DeleteFunc(layout.Networks, func(n report.NetworkReport) bool { return len(n.Pools) == 0 })
	found := search{where: r.where()}
	for _, name := range r.Selection.Pools {
		if _, known := poolsNamed(name, inv, layout); !known {
			found.miss("pool", name, layout.PoolNames())
		}
	}
	r.Selection.Found = poolsOf(r.Selection.Pools, inv, layout)
	r.chosen = r.choose()
	return found.err(nothingBack)
}

// recorded returns an inventory with only the pools of the journal. A pool that is gone has its
// name, which for a Calico block is its range.
func (r *restoreCall) recorded(inv ipam.Inventory) ipam.Inventory {
	listed := make(map[ipam.PoolRef]ipam.Pool)
	for _, l := range inv.Listings {
		for _, pool := range l.Pools {
			listed[ipam.PoolRef{Backend: l.Backend, Name: pool.Name}] = pool
		}
	}
	pools, seen := make(map[string][]ipam.Pool), make(map[ipam.PoolRef]bool)
	for _, rec := range r.Journal.Records {
		ref := ipam.PoolRef{Backend: rec.Backend, Name: rec.Pool}
		if seen[ref] {
			continue
		}
		seen[ref] = true
		pool, ok := listed[ref]
		if !ok {
			pool.Name = rec.Pool
			pool.Range, _ = netip.ParsePrefix(rec.Pool)
		}
		pools[rec.Backend] = append(pools[rec.Backend], pool)
	}
	inv.Listings = slices.Clone(inv.Listings)
	for i := range inv.Listings {
		inv.Listings[i].Pools = pools[inv.Listings[i].Backend]
	}
	return inv
}

// where says where a name was looked for.
func (r *restoreCall) where() string { return " in the journal of run " + r.Journal.Run.ID }
