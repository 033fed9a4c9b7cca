package judge

import (
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Facts are all the data that a decision may rest on: those of a Case are here, or are worked out
// from here.
//
// The second look takes the Facts of the first one and replaces only the census
// (again). So it asks the same table about the same facts. Facts do not change after
// NewFacts, and are safe for concurrent use.
type Facts struct {
	now    time.Time
	policy policy.Policy
	census census.Census
	ledger ledger.Ledger
	stores map[string]store // by backend

	// unclaimed is set if an annotation is evidence only for allocations of its own pod,
	// and hides nothing, and the report of a guest only for those of its own machine. Such a
	// decision shows what the claims of others change.
	unclaimed bool

	owned  index                            // the allocations that prove an owner, of all stores
	newest map[ipam.PodRef]*ipam.Allocation // of each pod that waits for its address: on its node, where sandboxes adopt none
}

// A store is an index of what one backend listed.
type store struct {
	pools map[string]*ipam.Pool // by name
	nodes map[string]bool       // the nodes of allocations that exist under that name

	// foreign is a node of the store that is none of this cluster; nil if there is none.
	foreign *ipam.StoreNode

	// renames is set if a pod shows an address that the store has on a node of another
	// name.
	renames bool

	// unseen says how many addresses the store has if it may be that of another cluster: it is
	// outside the API server, has limits.minEntries addresses, and no pod shows one of its own
	// there. Otherwise it is 0.
	unseen int
}

// NewFacts indexes the inventory. A census that began before the listing was complete
// may lack the pod of an allocation. Such a census is not believed: the Facts get the
// zero Census.
func NewFacts(now time.Time, p policy.Policy, inv ipam.Inventory, c census.Census, l ledger.Ledger) *Facts {
	if inv.Ended().IsZero() || c.Began().Before(inv.Ended()) {
		c = census.Census{}
	}
	f := &Facts{now: now, policy: p, census: c, ledger: l, stores: make(map[string]store, len(inv.Listings)), newest: make(map[ipam.PodRef]*ipam.Allocation)}
	owned := make([]*ipam.Allocation, 0, inv.Size())
	for _, l := range inv.Listings {
		s := store{pools: make(map[string]*ipam.Pool, len(l.Pools)), nodes: make(map[string]bool)}
		addresses, seen := 0, l.Outside == nil
		for i := range l.Pools {
			pool := &l.Pools[i]
			s.pools[pool.Name] = pool
			for n := range pool.Allocations {
				a := &pool.Allocations[n]
				if f.isForeign(a.StoreNode) {
					s.foreign = a.StoreNode
				}
				if a.HoldsAddress() {
					addresses++
				}
				seen = seen || showsOwn(c, a)
				if !a.ProvesOwner() {
					continue
				}
				owned = append(owned, a)
				if c.HasNode(a.Owner.Node) {
					s.nodes[a.Owner.Node] = true
				}
				pod, _ := c.Pod(a.Owner.Pod)
				s.renames = s.renames || a.Owner.Node != "" && isElsewhere(pod, a)
				if last := f.newest[pod.Ref]; f.ofTry(a, pod) && (last == nil || last.Created.Before(a.Created)) {
					f.newest[pod.Ref] = a
				}
			}
		}
		if !seen && addresses >= *p.Limits.MinEntries {
			s.unseen = addresses
		}
		f.stores[l.Backend] = s
	}
	f.owned = newIndex(owned)
	return f
}

// showsOwn reports whether a pod shows what the store has for it: its address or, if the store
// names no pod, its sandbox. The address alone proves nothing: two clusters may use the same range.
func showsOwn(c census.Census, a *ipam.Allocation) bool {
	if a.NamesPod() {
		pod, _ := c.Pod(a.Owner.Pod)
		return pod.Shows(a.IP)
	}
	_, shown := c.InSandbox(a.Owner.Sandbox)
	return shown
}

// isElsewhere reports whether the pod shows the address of the allocation but is not on the
// node that the store names.
func isElsewhere(p census.Pod, a *ipam.Allocation) bool {
	return p.Node != "" && p.Node != a.Owner.Node && p.Shows(a.IP)
}

// again returns the same facts with another census.
func (f *Facts) again(c census.Census) *Facts {
	fresh := *f
	fresh.census = c
	return &fresh
}

// PoolOf returns the pool of an allocation; an empty one if the pool was not listed.
func (f *Facts) PoolOf(a *ipam.Allocation) *ipam.Pool {
	if p := f.stores[a.Backend].pools[a.Pool]; p != nil {
		return p
	}
	return &ipam.Pool{Name: a.Pool}
}

// hiding returns how many pods may have an address that they do not show.
func (f *Facts) hiding() int {
	if f.unclaimed {
		return f.census.Hiding() - len(f.census.Veiled())
	}
	return f.census.Hiding()
}
