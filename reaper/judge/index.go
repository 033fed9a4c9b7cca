package judge

import (
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An index finds the allocations of all stores that prove an owner, by what they have in
// common. It does not change after newIndex, and is safe for concurrent use.
type index struct {
	addresses map[held][]*ipam.Allocation
	sandboxes sharers
	groups    sharers
}

// A held is an address and the pod that has it by a store.
type held struct {
	ip  netip.Addr
	pod ipam.PodRef
}

// newIndex returns the index of these allocations, which are in the order of the listing.
func newIndex(all []*ipam.Allocation) index {
	x := index{
		addresses: make(map[held][]*ipam.Allocation, len(all)),
		sandboxes: newSharers(all, func(a *ipam.Allocation) string { return a.Owner.Sandbox }),
		groups:    newSharers(all, func(a *ipam.Allocation) string { return a.Group }),
	}
	for _, a := range all {
		by := held{a.IP, a.Owner.Pod}
		x.addresses[by] = append(x.addresses[by], a)
	}
	return x
}

// of returns the allocations by which any store gives the address to the pod.
func (x *index) of(ip netip.Addr, pod ipam.PodRef) []*ipam.Allocation {
	return x.addresses[held{ip, pod}]
}

// sharers finds the allocations that share the name of a sandbox, or of a group. In a
// damaged store, thousands of pods share one, so each is found by its pod.
type sharers struct {
	byPod map[share][]*ipam.Allocation
	all   map[string][]*ipam.Allocation // by the name alone
}

// A share is what one pod has of a name, or what no pod has.
type share struct {
	name string
	pod  ipam.PodRef
}

// newSharers returns the sharers of these names. An allocation whose name is empty shares
// nothing.
func newSharers(all []*ipam.Allocation, nameOf func(*ipam.Allocation) string) sharers {
	s := sharers{byPod: make(map[share][]*ipam.Allocation), all: make(map[string][]*ipam.Allocation)}
	for _, a := range all {
		name := nameOf(a)
		if name == "" {
			continue
		}
		by := share{name, a.Owner.Pod}
		s.byPod[by] = append(s.byPod[by], a)
		s.all[name] = append(s.all[name], a)
	}
	return s
}

// others adds to found the other allocations of a name that may be of the same pod as the
// given one. Those are the ones that name its pod, or no pod; all if the given one names none.
func (s *sharers) others(found []*ipam.Allocation, a *ipam.Allocation, name string) []*ipam.Allocation {
	add := func(some []*ipam.Allocation) {
		for _, o := range some {
			if o.Backend != a.Backend || o.Pool != a.Pool || o.Key != a.Key {
				found = append(found, o)
			}
		}
	}
	switch none := (ipam.PodRef{}); {
	case name == "":
	case a.Owner.Pod == none:
		add(s.all[name])
	default:
		add(s.byPod[share{name, a.Owner.Pod}])
		add(s.byPod[share{name, none}])
	}
	return found
}
