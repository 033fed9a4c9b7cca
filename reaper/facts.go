package reaper

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// Facts are all data that a decision may rest on. A Rule sees nothing else.
//
// The second look takes the Facts of the first one and replaces only the census
// (again). So it asks the same table about the same facts. Facts do not change after
// newFacts, and are safe for concurrent use.
type Facts struct {
	now    time.Time
	policy policy.Policy
	census Census
	ledger Ledger
	stores map[string]store // by backend
}

// A store is an index of what one backend listed.
type store struct {
	pools  map[string]*Pool       // by name
	owners map[netip.Addr][]owned // the allocations that prove an owner, by address
}

// An owned is an allocation that proves its owner, and the network of its pool.
type owned struct {
	*Allocation
	network string
}

// newFacts indexes the inventory. A census that began before the listing was complete
// may lack the pod of an allocation. Such a census is not believed: the Facts get the
// zero Census.
func newFacts(now time.Time, p policy.Policy, inv Inventory, c Census, l Ledger) *Facts {
	if inv.ended.IsZero() || c.began.Before(inv.ended) {
		c = Census{}
	}
	f := &Facts{now: now, policy: p, census: c, ledger: l, stores: make(map[string]store, len(inv.Listings))}
	for _, l := range inv.Listings {
		s := store{pools: make(map[string]*Pool, len(l.Pools)), owners: make(map[netip.Addr][]owned)}
		for i := range l.Pools {
			pool := &l.Pools[i]
			s.pools[pool.Name] = pool
			for n := range pool.Allocations {
				if a := &pool.Allocations[n]; a.provesOwner() {
					s.owners[a.IP] = append(s.owners[a.IP], owned{a, pool.Network})
				}
			}
		}
		f.stores[l.Backend] = s
	}
	return f
}

// again returns the same facts with another census.
func (f *Facts) again(c Census) *Facts {
	fresh := *f
	fresh.census = c
	return &fresh
}

// pool returns the pool of an allocation; an empty one if the pool was not listed.
func (f *Facts) pool(a *Allocation) *Pool {
	if p := f.stores[a.Backend].pools[a.Pool]; p != nil {
		return p
	}
	return &Pool{Name: a.Pool}
}

// terms returns the policy's terms for the allocation. For an allocation that holds no
// address and names no pod, they come from the rules that match by backend alone:
// rules that match by name would keep it for ever.
func (f *Facts) terms(a *Allocation) policy.Terms {
	if !a.holdsAddress() && a.Owner.Pod == (PodRef{}) {
		return f.policy.BackendTerms(a.Backend)
	}
	return f.policy.Terms(a.Owner.Pod.Namespace, a.Owner.Pod.Name, a.Backend)
}

// node returns the node on which the pod of the allocation is, or was last seen. It
// returns nothing if the store itself names a node, or if no source knows one.
func (f *Facts) node(a *Allocation) string {
	if a.Owner.Node != "" || !a.provesOwner() {
		return ""
	}
	known := f.ledger.node(*a)
	pod, presence := f.census.pod(a.Owner.Pod)
	if presence == Present && pod.Node != "" && (known == "" || pod.shows(a.IP)) {
		return pod.Node
	}
	return known
}

// ownWitness returns the pod that the allocation names, if the pod shows the address
// and so keeps it. A finished pod is no witness for its own allocation.
func (f *Facts) ownWitness(a *Allocation) (Pod, bool) {
	for _, pod := range f.census.showing(a.IP) {
		if pod.Ref == a.Owner.Pod && !pod.Finished {
			return pod, true
		}
	}
	return Pod{}, false
}

// otherWitness returns a pod that the allocation does not name, and that shows the
// address and so keeps it.
//
// A pod is no witness if the same backend gives it the same address in another
// network: it shows that other allocation. A finished pod is no witness if the policy
// releases the addresses of finished pods.
func (f *Facts) otherWitness(a *Allocation) (Pod, bool) {
	for _, pod := range f.census.showing(a.IP) {
		ended := pod.Finished && f.policy.Pods.Finished == policy.Release
		if pod.Ref != a.Owner.Pod && !ended && !f.hasItElsewhere(a, pod.Ref) {
			return pod, true
		}
	}
	return Pod{}, false
}

// hasItElsewhere reports whether the pod has the same address by an allocation of
// another network.
func (f *Facts) hasItElsewhere(a *Allocation, pod PodRef) bool {
	here := f.pool(a).Network
	return slices.ContainsFunc(f.stores[a.Backend].owners[a.IP], func(o owned) bool {
		known := o.network != "" && here != ""
		return o.Owner.Pod == pod && o.Pool != a.Pool && known && o.network != here
	})
}

// stillThere reports whether the pod that the allocation names exists, and is neither
// finished, nor replaced by another pod, nor on another sandbox.
func (f *Facts) stillThere(a *Allocation) bool {
	_, presence := f.census.pod(a.Owner.Pod)
	return presence == Present && !f.finished(a) && !f.otherPod(a) && !f.otherSandbox(a)
}

// named returns the pod that the allocation names, if it exists. Its state may speak
// against the allocation. A name that the backend derived is not enough for that.
func (f *Facts) named(a *Allocation) (Pod, bool) {
	if a.Inferred || !a.holdsAddress() {
		return Pod{}, false
	}
	pod, presence := f.census.pod(a.Owner.Pod)
	return pod, presence == Present
}

// finished reports whether the named pod has ended. If the pod does not show the
// address, another UID and another sandbox are stronger reasons, and it reports false
// for these.
func (f *Facts) finished(a *Allocation) bool {
	pod, ok := f.named(a)
	return ok && pod.Finished && (pod.shows(a.IP) || !f.otherPod(a) && !f.otherSandbox(a))
}

// otherPod reports whether the pod of that name has another UID.
func (f *Facts) otherPod(a *Allocation) bool {
	pod, ok := f.named(a)
	if !ok || pod.Finished && pod.shows(a.IP) {
		return false
	}
	return a.Owner.UID != "" && pod.UID != "" && a.Owner.UID != pod.UID
}

// otherSandbox reports whether the named pod has replaced the allocation's sandbox.
func (f *Facts) otherSandbox(a *Allocation) bool {
	pod, ok := f.named(a)
	if !ok || f.otherPod(a) || pod.Finished && pod.shows(a.IP) {
		return false
	}
	_, ok = f.replacement(a, pod)
	return ok
}
