package whereabouts

import (
	"encoding/json"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// holders returns the IPPool that holds, or may hold, the address of each overlapping
// reservation for its owner; an empty string where there is none. It passes through the
// IPPools once, however many reservations there are.
//
// Few IPPools name the owner of an overlapping reservation that is due, so holders decodes
// only those that do.
func holders(pools []json.RawMessage, rs []reaper.Allocation) []string {
	held, wanted := make([]string, len(rs)), make(map[string][]int, len(rs))
	for i, r := range rs {
		podRef := r.Owner.Pod.String()
		wanted[podRef] = append(wanted[podRef], i)
	}
	for _, item := range pools {
		if !namesAny(item, wanted) {
			continue
		}
		p, err := readPool(item)
		hold := func(i int) {
			if held[i] == "" && p.mayBeOf(networkOf(rs[i])) {
				held[i] = p.pool()
			}
		}
		if err != nil {
			eachNamed(item, wanted, hold)
			continue
		}
		for key, entry := range p.allocations {
			if namesAny(entry, wanted) {
				p.eachHeld(key, entry, rs, wanted, hold)
			}
		}
	}
	return held
}

// networkOf returns the network in the name of an overlapping reservation; empty for
// an unnamed network.
func networkOf(r reaper.Allocation) string {
	return strings.TrimSuffix(strings.TrimSuffix(r.Key, normalizeIP(r.IP)), "-")
}

// mayBeOf reports whether the plugin may use the IPPool for the network. The name of
// each IPPool of a named network begins with that name. The IPPool of an unnamed
// network may begin with the name of a node, which cannot be told from a network.
func (p ipPool) mayBeOf(network string) bool {
	return network == "" || p.name == "" || strings.HasPrefix(p.name, network+"-")
}

// eachHeld calls found with the index of each wanted reservation whose address an entry of
// the IPPool holds, or may hold, for its owner. An entry whose offset cannot be read may be
// any address of the range.
func (p ipPool) eachHeld(key string, entry json.RawMessage, rs []reaper.Allocation, wanted map[string][]int, found func(i int)) {
	held := p.allocation(key, entry)
	check := func(i int) {
		if held.IP == rs[i].IP || !held.IP.IsValid() && p.contains(rs[i].IP) {
			found(i)
		}
	}
	if held.Owner == (reaper.Owner{}) { // it cannot be decoded
		eachNamed(entry, wanted, check)
		return
	}
	for _, i := range wanted[held.Owner.Pod.String()] {
		check(i)
	}
}

// contains reports whether the range contains the address. The range may be written
// as IPv4 in IPv6.
func (p ipPool) contains(ip netip.Addr) bool {
	return p.prefix.Contains(ip) || p.prefix.Contains(netip.AddrFrom16(ip.As16()))
}
