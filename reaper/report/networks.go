package report

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A Layout has the networks and the pools of the stores.
type Layout struct {
	Networks []NetworkReport `json:"networks"`
	Pools    []PoolReport    `json:"pools"`

	// Rangeless says, by network attachment, why pods get no address of a store through it.
	Rangeless map[string]string `json:"-"`
}

// NewLayout returns the pools of an inventory that have a range, or are in a network, without networks.
func NewLayout(inv ipam.Inventory) Layout {
	layout := Layout{Networks: []NetworkReport{}, Pools: []PoolReport{}}
	for _, l := range inv.Listings {
		ranges := make(map[string]netip.Prefix)
		for _, n := range l.Networks {
			for _, pool := range n.Pools {
				ranges[pool] = n.Range
			}
		}
		for _, p := range l.Pools {
			known := p.Range.IsValid()
			if !known {
				p.Range, known = ranges[p.Name]
			}
			if known {
				layout.Pools = append(layout.Pools, PoolReport{
					Backend: l.Backend, Name: p.Name, Range: rangeText(p.Range), Node: p.Node,
					Usage: Usage{Capacity: p.Capacity}, AllocatedBefore: len(p.Allocations),
				})
			}
		}
	}
	return layout
}

// MaxEmptyNetworks is how many networks without a pool the report has for one backend. Each
// network attachment that a tenant writes may be one.
const MaxEmptyNetworks = 1000

// AddNetworks adds the networks of a listing. It returns how many networks without a pool it
// leaves out.
func (y *Layout) AddNetworks(l ipam.Listing, networks []ipam.Network) (omitted int) {
	indexOf := make(map[string]int, len(l.Pools))
	for i, p := range y.Pools {
		if p.Backend == l.Backend {
			indexOf[p.Name] = i
		}
	}
	empty := 0
	for _, n := range networks {
		if !n.Range.IsValid() && len(n.Pools) == 0 && n.Closed != "" && len(n.Attachments) > 0 {
			if y.Rangeless == nil {
				y.Rangeless = make(map[string]string)
			}
			for _, attachment := range n.Attachments {
				y.Rangeless[attachment] = n.Closed
			}
			continue
		}
		if len(n.Pools) == 0 {
			if empty++; empty > MaxEmptyNetworks {
				continue
			}
		}
		y.addNetwork(l, n, indexOf)
	}
	return max(0, empty-MaxEmptyNetworks)
}

// addNetwork adds a network, and narrows the capacity of its pools to the addresses that
// pods can get. The pools that the layout has are given by their index in it.
func (y *Layout) addNetwork(l ipam.Listing, n ipam.Network, indexOf map[string]int) {
	report := NetworkReport{
		Backend:     l.Backend,
		Name:        n.Name,
		Range:       rangeText(n.Range),
		Closed:      n.Closed,
		Partial:     !l.Whole,
		Pools:       []string{},
		Attachments: n.Attachments,
		Default:     n.Default,
		Unique:      n.Unique,
		Withheld:    n.Withheld,
		By:          n.By,
		Manual:      n.Manual,
		Division:    n.Division,
	}
	report.Partial = report.Partial || slices.ContainsFunc(l.Unlisted, func(p netip.Prefix) bool {
		return !n.Range.IsValid() || p.Addr().BitLen() == n.Range.Addr().BitLen()
	})
	if n.Known {
		report.Capacity, report.Usable = n.Usable.Count(), n.Usable
		report.Parts = partsOf(n.Parts)
	}
	var pools []int
	for _, name := range n.Pools {
		if i, ok := indexOf[name]; ok {
			pools = append(pools, i)
		}
	}
	slices.Sort(pools)
	for _, i := range slices.Compact(pools) {
		p := &y.Pools[i]
		report.Pools = append(report.Pools, p.Name)
		p.Closed, p.Capacity = n.Closed, nil
		if prefix, err := netip.ParsePrefix(p.Range); n.Known && err == nil {
			p.Capacity = n.Usable.Within(shownPrefix(prefix)).Count()
		}
	}
	y.Networks = append(y.Networks, report)
}

// rangeText returns the text of a range; empty if it is not known.
func rangeText(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}

// shownPrefix returns a prefix in the form of the addresses that pods show.
func shownPrefix(p netip.Prefix) netip.Prefix {
	const inIPv6 = 96 // the bits of an IPv6 address before the IPv4 address in it
	if p.Addr().Is4In6() && p.Bits() >= inIPv6 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-inIPv6)
	}
	return p
}

// PoolsNamed resolves a name that people type to pools. The name is that of a
// pool, with or without its namespace, or that of a network, for all of its pools; or it is a
// CIDR, for the pools and networks inside it. If nothing has the name, it may be that of a network
// attachment, which any tenant chooses, for the pools of all of its networks. PoolsNamed reports
// whether anything has the name: a network may have no pool yet.
func (y Layout) PoolsNamed(name string) (pools map[ipam.PoolRef]bool, known bool) {
	pools = make(map[ipam.PoolRef]bool)
	for _, p := range y.Pools {
		if p.named(name) {
			pools[p.ref()] = true
		}
	}
	networks := y.networksNamed(name)
	for _, n := range networks {
		maps.Copy(pools, n.refs())
	}
	return pools, len(networks)+len(pools) > 0
}

// networksNamed returns the networks that a name stands for.
func (y Layout) networksNamed(name string) []NetworkReport {
	named := y.networksThat(func(n NetworkReport) bool { return n.Name == name || within(name, n.Range) })
	if len(named) == 0 && !slices.ContainsFunc(y.Pools, func(p PoolReport) bool { return p.named(name) }) {
		return y.networksThat(func(n NetworkReport) bool { return slices.Contains(n.Attachments, name) })
	}
	return named
}

// networksThat returns the wanted networks.
func (y Layout) networksThat(wanted func(NetworkReport) bool) []NetworkReport {
	return slices.DeleteFunc(slices.Clone(y.Networks), func(n NetworkReport) bool { return !wanted(n) })
}

// named reports whether the name that people type is that of the pool, or a CIDR around it.
func (p PoolReport) named(name string) bool {
	return p.Name == name || judge.ShortPool(p.Name) == name || within(name, p.Range)
}

// PoolNames returns the names of pools, networks and attachments, and their ranges, for which
// PoolsNamed finds something.
func (y Layout) PoolNames() []string {
	var names []string
	for _, n := range y.Networks {
		names = append(append(names, n.Name, n.Range), n.Attachments...)
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

// within reports whether a range is inside a CIDR; false for any other text.
func within(cidr, inner string) bool {
	prefix, err := netip.ParsePrefix(inner)
	return err == nil && policy.Within(cidr, prefix)
}

// contains reports whether an address is inside a CIDR; false for any other text.
func contains(cidr string, ip netip.Addr) bool {
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && prefix.Contains(ip)
}
