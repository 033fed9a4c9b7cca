package reaper

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// Facts are everything that a decision may rest on. A Rule sees nothing else.
//
// The second look at an owner takes the Facts of the first one and replaces the
// census (again), so that it asks the same table about the same facts. Facts are not
// changed after newFacts, and are safe for concurrent use.
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
	owners map[netip.Addr][]claim // by the address that the store gives to a pod
}

// A claim is an allocation by which a store says that a pod has an address.
type claim struct {
	*Allocation
	network string // of the pool
}

// newFacts indexes what was listed. A census that began before the listing was
// complete could miss the pod of an allocation, and is not believed: the Facts then
// know nobody.
func newFacts(now time.Time, p policy.Policy, inv Inventory, c Census, l Ledger) *Facts {
	if inv.ended.IsZero() || c.began.Before(inv.ended) {
		c = Census{}
	}
	f := &Facts{now: now, policy: p, census: c, ledger: l, stores: make(map[string]store, len(inv.Listings))}
	for _, l := range inv.Listings {
		s := store{pools: make(map[string]*Pool, len(l.Pools)), owners: make(map[netip.Addr][]claim)}
		for i := range l.Pools {
			pool := &l.Pools[i]
			s.pools[pool.Name] = pool
			for n := range pool.Allocations {
				if a := &pool.Allocations[n]; a.saysWhose() {
					s.owners[a.IP] = append(s.owners[a.IP], claim{a, pool.Network})
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

// pool returns the pool of an allocation; an empty one where it was not listed.
func (f *Facts) pool(a *Allocation) *Pool {
	if p := f.stores[a.Backend].pools[a.Pool]; p != nil {
		return p
	}
	return &Pool{Name: a.Pool}
}

// terms returns what the policy says of the allocation. An allocation that holds no
// address and names no pod falls under the rules that match by backend alone: no
// name would ever let it go.
func (f *Facts) terms(a *Allocation) policy.Terms {
	if !a.holdsAddress() && a.Owner.Pod == (PodRef{}) {
		return f.policy.BackendTerms(a.Backend)
	}
	return f.policy.Terms(a.Owner.Pod.Namespace, a.Owner.Pod.Name, a.Backend)
}

// node returns where the pod of the allocation is, or was when it was last seen;
// nothing where the store itself names a node, or where no source knows one.
func (f *Facts) node(a *Allocation) string {
	if a.Owner.Node != "" || !a.saysWhose() {
		return ""
	}
	known := f.ledger.node(*a)
	pod, presence := f.census.pod(a.Owner.Pod)
	if presence == Present && pod.Node != "" && (known == "" || pod.shows(a.IP)) {
		return pod.Node
	}
	return known
}

// ownWitness returns the named pod, if it shows the address and so keeps it. A finished
// pod is no witness for its own allocation.
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
// A pod to which the same backend gives this very address in another network is no
// witness: it shows that other allocation. Nor is a finished pod, where the policy
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

// hasItElsewhere reports whether the pod has an allocation of its own of this
// address, in another pool of another network.
func (f *Facts) hasItElsewhere(a *Allocation, pod PodRef) bool {
	here := f.pool(a).Network
	return slices.ContainsFunc(f.stores[a.Backend].owners[a.IP], func(c claim) bool {
		known := c.network != "" && here != ""
		return c.Owner.Pod == pod && c.Pool != a.Pool && known && c.network != here
	})
}

// stillThere looks at the pod that the allocation names, and reports whether it
// exists and is not finished, replaced by another pod, or on another sandbox.
func (f *Facts) stillThere(a *Allocation) bool {
	_, presence := f.census.pod(a.Owner.Pod)
	return presence == Present && !f.finished(a) && !f.otherPod(a) && !f.otherSandbox(a)
}

// named returns the pod whose state may speak against the allocation: the store
// itself names it, and it exists. A name that a backend derived proves nothing
// against a pod.
func (f *Facts) named(a *Allocation) (Pod, bool) {
	if a.Inferred || !a.holdsAddress() {
		return Pod{}, false
	}
	pod, presence := f.census.pod(a.Owner.Pod)
	return pod, presence == Present
}

// finished reports whether the named pod has ended. Where it shows the address that
// is so whatever else speaks against the allocation; elsewhere another pod or
// another sandbox speak first.
func (f *Facts) finished(a *Allocation) bool {
	pod, ok := f.named(a)
	return ok && pod.Finished && (pod.shows(a.IP) || !f.otherPod(a) && !f.otherSandbox(a))
}

// otherPod reports whether a pod of the same name has another UID.
func (f *Facts) otherPod(a *Allocation) bool {
	pod, ok := f.named(a)
	return ok && !(pod.Finished && pod.shows(a.IP)) &&
		a.Owner.UID != "" && pod.UID != "" && a.Owner.UID != pod.UID
}

// otherSandbox reports whether the named pod has another sandbox by now.
func (f *Facts) otherSandbox(a *Allocation) bool {
	pod, ok := f.named(a)
	if !ok || f.otherPod(a) || pod.Finished && pod.shows(a.IP) {
		return false
	}
	_, ok = f.replacement(a, pod)
	return ok
}
