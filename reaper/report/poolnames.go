package report

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// PoolsNamed resolves a name that people type to pools. The name is that of a
// pool, with or without its namespace, or that of a network, for all of its pools; or it is a
// CIDR, for the pools and networks inside it. PoolsNamed reports whether anything has the
// name: a network may have no pool yet.
func (y Layout) PoolsNamed(name string) (pools map[ipam.PoolRef]bool, known bool) {
	pools = make(map[ipam.PoolRef]bool)
	for _, p := range y.Pools {
		if p.Name == name || judge.ShortPool(p.Name) == name || within(name, p.Range) {
			pools[p.ref()] = true
		}
	}
	for _, n := range y.Networks {
		if n.named(name) {
			known = true
			maps.Copy(pools, n.refs())
		}
	}
	return pools, known || len(pools) > 0
}

// PoolNames returns the names of pools and networks, and their ranges, for which PoolsNamed finds
// something.
func (y Layout) PoolNames() []string {
	var names []string
	for _, n := range y.Networks {
		names = append(names, n.Name, n.Range)
	}
	for _, p := range y.Pools {
		names = append(names, p.Name, judge.ShortPool(p.Name), p.Range)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// refs returns the pools of the network.
func (n NetworkReport) refs() map[ipam.PoolRef]bool {
	refs := make(map[ipam.PoolRef]bool, len(n.Pools))
	for _, pool := range n.Pools {
		refs[ipam.PoolRef{Backend: n.Backend, Name: pool}] = true
	}
	return refs
}

// named reports whether the name that people type is that of the network, or a CIDR around it.
func (n NetworkReport) named(name string) bool { return n.Name == name || within(name, n.Range) }

// within reports whether a range is inside a CIDR; false for any other text.
func within(cidr, inner string) bool {
	outer, err := netip.ParsePrefix(cidr)
	if err != nil {
		return false
	}
	prefix, err := netip.ParsePrefix(inner)
	return err == nil && outer.Bits() <= prefix.Bits() && outer.Masked().Contains(prefix.Addr())
}
