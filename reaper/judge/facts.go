package judge

import (
	"hash/maphash"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Facts are all the data that a decision may rest on: those of a Case are here, or are worked out
// from here.
//
// The second look takes the Facts of the first one and replaces only the census and, if others have saved it, the
// ledger. So it asks the same table about the same facts. Facts do not change once made, and are safe for
// concurrent use.
type Facts struct {
	now    time.Time
	policy *policy.Compiled
	census census.Census
	ledger ledger.Ledger
	stores map[string]store // by backend

	// meanings are what stores mean by names of nodes, as pods show now, or a run saw earlier. byName
	// has them by the name.
	meanings []ledger.Meaning
	byName   map[string][]ledger.Meaning

	incomplete bool // what could not be listed may name the pod of an allocation that names none

	pools  map[ipam.PoolRef]policy.Pool   // nil if no rule of the policy has pools
	ranged map[netip.Prefix][]policy.Pool // those of them that have a range, by it
	bits   []int                          // the lengths of these ranges

	vague map[pooled]*ipam.Attachment // by which a sandbox of the node may have an address of the pool; the first one

	owned index // the allocations that prove an owner, of all stores
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

	inside bool // the API server has it, so that it is of no other cluster

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
	f := &Facts{now: now, policy: p.Compile(), census: c, ledger: l, stores: make(map[string]store, len(inv.Listings)), incomplete: !inv.Complete()}
	owned := make([]*ipam.Allocation, 0, inv.Size())
	shown := make(map[ledger.Meaning]bool)
	for _, l := range inv.Listings {
		s := store{pools: make(map[string]*ipam.Pool, len(l.Pools)), nodes: make(map[string]bool), inside: l.Outside == nil}
		addresses, seen := 0, s.inside
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
				if a.Owner.Node != "" && pod.Node != "" && pod.Node != a.Owner.Node {
					s.renames = s.renames || pod.Shows(a.IP)
					if showsBooked(a, pod) {
						shown[ledger.Meaning{Backend: a.Backend, Name: a.Owner.Node, Node: pod.Node, Seen: ledger.ToSecond(now).Unix()}] = true
					}
				}
			}
		}
		if !seen && addresses >= *p.Limits.MinEntries {
			s.unseen = addresses
		}
		f.stores[l.Backend] = s
	}
	f.learn(shown)
	f.owned = newIndex(owned)
	if slices.ContainsFunc(p.Rules, func(r policy.Rule) bool { return len(r.Match.Pools) > 0 }) {
		f.pools = poolsOfRules(inv)
	}
	f.ranged = make(map[netip.Prefix][]policy.Pool)
	for ref, pool := range f.pools {
		if pool.Range.IsValid() {
			f.pools[ref] = f.policy.Answered(pool)
			at := pool.Range.Masked()
			f.ranged[at] = append(f.ranged[at], f.pools[ref])
			f.bits = append(f.bits, at.Bits())
		}
	}
	slices.Sort(f.bits)
	f.bits = slices.Compact(f.bits)
	f.vague = f.vaguely()
	return f
}

// with returns the facts with another census and, unless it is nil, another ledger.
func (f *Facts) with(c census.Census, l *ledger.Ledger) *Facts {
	fresh := *f
	fresh.census = c
	if l != nil {
		fresh.ledger = *l
		fresh.mean(l.Meanings)
	}
	fresh.vague = fresh.vaguely()
	return &fresh
}

// A pooled stands for the addresses of one family in a pool.
type pooled struct {
	backend, pool string
	is4           bool
}

// vaguely finds, for each pool on the node and each family, a sandbox of which an entry cannot be decoded,
// and which the pool gives no address of that family for the interface of the entry.
func (f *Facts) vaguely() map[pooled]*ipam.Attachment {
	entries := f.census.Vague()
	if len(entries) == 0 {
		return nil
	}
	found := make(map[pooled]*ipam.Attachment)
	for i := range entries {
		has := make(map[pooled]bool)
		for o := range f.owned.sandboxes.named(entries[i].Sandbox) {
			if o.Owner.Interface == entries[i].Interface {
				has[pooled{o.Backend, o.Pool, o.IP.Is4()}] = true
			}
		}
		for backend, s := range f.stores {
			for pool := range s.pools {
				for _, is4 := range []bool{true, false} {
					key := pooled{backend, pool, is4}
					if found[key] == nil && !has[key] {
						found[key] = &entries[i]
					}
				}
			}
		}
	}
	return found
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

// PoolOf returns the pool of an allocation; an empty one if the pool was not listed.
func (f *Facts) PoolOf(a *ipam.Allocation) *ipam.Pool {
	if p := f.stores[a.Backend].pools[a.Pool]; p != nil {
		return p
	}
	return &ipam.Pool{Name: a.Pool}
}

// An index finds the allocations of all stores that prove an owner, by what they have in
// common. It takes only about 40 bytes each, because most are never looked up. An index
// does not change after newIndex, and is safe for concurrent use.
type index struct {
	all []*ipam.Allocation // in the order of the listing

	sandboxes, groups sharers
	byAddress         positions
}

// A shared is what allocations have in common: the name of a sandbox or a group, or an address; and
// the pod, unless any will do.
type shared struct {
	name string
	ip   netip.Addr
	pod  ipam.PodRef
}

// newIndex returns the index of these allocations.
func newIndex(all []*ipam.Allocation) index {
	x := index{
		all: all, byAddress: newPositions(len(all)),
		sandboxes: newSharers(all, func(a *ipam.Allocation) string { return a.Owner.Sandbox }),
		groups:    newSharers(all, func(a *ipam.Allocation) string { return a.Group }),
	}
	for i, a := range slices.Backward(all) {
		x.byAddress.put(i, shared{ip: a.IP, pod: a.Owner.Pod})
	}
	return x
}

// of yields the allocations with which any store gives the address to the pod, in the
// order of the listing.
func (x *index) of(ip netip.Addr, pod ipam.PodRef) iter.Seq[*ipam.Allocation] {
	return func(yield func(*ipam.Allocation) bool) {
		for i := range x.byAddress.at(shared{ip: ip, pod: pod}) {
			if a := x.all[i]; a.IP == ip && a.Owner.Pod == pod && !yield(a) {
				return
			}
		}
	}
}

// sharers finds the allocations that share the name of a sandbox, or of a group. In a
// damaged store, thousands of pods may share one, so each is found by its pod too.
type sharers struct {
	all    []*ipam.Allocation            // in the order of the listing
	name   func(*ipam.Allocation) string // empty if it has none, and so shares nothing
	byPod  positions
	byName positions // of any pod
}

// newSharers returns the sharers of these names.
func newSharers(all []*ipam.Allocation, name func(*ipam.Allocation) string) sharers {
	s := sharers{all: all, name: name, byPod: newPositions(len(all)), byName: newPositions(len(all))}
	for i, a := range slices.Backward(all) {
		if shares := name(a); shares != "" {
			s.byPod.put(i, shared{name: shares, pod: a.Owner.Pod})
			s.byName.put(i, shared{name: shares})
		}
	}
	return s
}

// others appends to found the other allocations of a name that may be of the same pod as the
// given one, in the order of the listing: those that name its pod, or no pod; all if the given
// one names none.
func (s *sharers) others(found []*ipam.Allocation, a *ipam.Allocation, name string) []*ipam.Allocation {
	if name == "" {
		return found
	}
	pod, none := a.Owner.Pod, ipam.PodRef{}
	var room [8]int // so that few siblings cost no memory
	for _, i := range s.near(room[:0], name, pod) {
		o := s.all[i]
		itself := o.Backend == a.Backend && o.Pool == a.Pool && o.Key == a.Key
		if !itself && s.name(o) == name && (pod == none || o.Owner.Pod == none || o.Owner.Pod == pod) {
			found = append(found, o)
		}
	}
	return found
}

// named yields the allocations of a name, in the order of the listing.
func (s *sharers) named(name string) iter.Seq[*ipam.Allocation] {
	return func(yield func(*ipam.Allocation) bool) {
		for i := range s.byName.at(shared{name: name}) {
			if s.name(s.all[i]) == name && !yield(s.all[i]) {
				return
			}
		}
	}
}

// near appends to at the positions of the allocations of a name that may be of a pod, and maybe
// other positions, in ascending order.
func (s *sharers) near(at []int, name string, pod ipam.PodRef) []int {
	if pod == (ipam.PodRef{}) {
		return slices.AppendSeq(at, s.byName.at(shared{name: name}))
	}
	at = slices.AppendSeq(at, s.byPod.at(shared{name: name, pod: pod}))
	at = slices.AppendSeq(at, s.byPod.at(shared{name: name}))
	slices.Sort(at)
	return slices.Compact(at) // both keys may have the same hash
}

// positions is a hash table of positions in a list, by what is shared there. It holds
// no keys, so it takes about 10 bytes each: a lookup also returns some positions of other
// keys, and the caller compares. The zero table is empty. After the last put, it is safe for
// concurrent use.
type positions struct {
	heads []int32 // by hash: the position that was put in last, plus 1; 0 if there is none
	next  []int32 // by position: the one that was put in before, plus 1; 0 if there is none
}

// positionsSeed keeps tenants from knowing which keys have the same hash.
var positionsSeed = maphash.MakeSeed()

// newPositions returns a table for positions below n.
func newPositions(n int) positions {
	size := 1
	for size < n {
		size *= 2
	}
	return positions{heads: make([]int32, size), next: make([]int32, n)}
}

// put adds a position, which must be below those in the table.
func (p *positions) put(i int, key shared) {
	head := p.head(key)
	p.next[i], *head = *head, int32(i+1)
}

// at yields the positions of a key, and maybe of others, in ascending order.
func (p *positions) at(key shared) iter.Seq[int] {
	return func(yield func(int) bool) {
		if len(p.next) == 0 {
			return
		}
		for i := *p.head(key); i != 0; i = p.next[i-1] {
			if !yield(int(i - 1)) {
				return
			}
		}
	}
}

// head returns the place in heads of a key.
func (p *positions) head(key shared) *int32 {
	return &p.heads[maphash.Comparable(positionsSeed, key)&uint64(len(p.heads)-1)]
}
