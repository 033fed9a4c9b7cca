package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// overlaps returns the pools of which another one of their backend has the addresses too, although
// each gives out its own alone, with the live pods that show these addresses.
func (y Layout) overlaps(inv ipam.Inventory, c census.Census, networkOf map[ipam.PoolRef]int32) []Finding {
	var found []Finding
	for _, l := range inv.Listings {
		var pools []ipam.Pool // of very many, few are
		for _, p := range l.Pools {
			if p.Exclusive && p.Range.IsValid() {
				pools = append(pools, p)
			}
		}
		slices.SortFunc(pools, func(a, b ipam.Pool) int {
			return cmp.Or(a.Range.Addr().Compare(b.Range.Addr()), cmp.Compare(a.Range.Bits(), b.Range.Bits()), cmp.Compare(a.Name, b.Name))
		})
		var around []ipam.Pool // each has the next one in it
		for _, p := range pools {
			for len(around) > 0 && !around[len(around)-1].Range.Overlaps(p.Range) {
				around = around[:len(around)-1]
			}
			if len(around) > 0 {
				outer := around[len(around)-1]
				f := Finding{
					Kind: Overlap, Backend: l.Backend, Range: p.Range.String(), Pools: []string{outer.Name, p.Name},
					Claims: []ShownBy{}, Stored: storedIn(p.Range, outer, p), Recorded: true,
				}
				if n, ok := networkOf[ipam.PoolRef{Backend: l.Backend, Name: p.Name}]; ok {
					f.Network = y.Networks[n].Name
				}
				found = append(found, f)
			}
			around = append(around, p)
		}
	}
	addLive(found, c)
	return found
}

// storedIn returns the pods for which pools have addresses of a range.
func storedIn(in netip.Prefix, pools ...ipam.Pool) []string {
	stored := []string{}
	for _, p := range pools {
		for _, a := range p.Allocations {
			if a.NamesPod() && shownPrefix(in).Contains(a.IP) {
				stored = append(stored, a.Owner.Pod.String())
			}
		}
	}
	slices.Sort(stored)
	return slices.Compact(stored)
}

// addLive adds the live pods that show addresses of overlaps by their status or by Calico's
// annotations.
func addLive(found []Finding, c census.Census) {
	byRange, lengths := make(map[netip.Prefix][]*Finding), make(map[int]bool)
	for i := range found {
		if in, err := netip.ParsePrefix(found[i].Range); err == nil {
			in = shownPrefix(in).Masked()
			byRange[in] = append(byRange[in], &found[i])
			lengths[in.Bits()] = true
		}
	}
	if len(found) == 0 {
		return
	}
	for p := range c.Pods() {
		pod := &c.Pods()[p]
		if !mayClaim(pod) {
			continue
		}
		for _, ip := range pod.Addresses[:max(pod.InStatus, pod.ByCalico)] {
			for bits := range lengths {
				in, err := ip.Prefix(bits)
				if err != nil {
					continue
				}
				for _, f := range byRange[in] {
					claim := shownBy(pod, ip)
					claim.IP = ip.String()
					f.Claims = append(f.Claims, claim)
				}
			}
		}
	}
}

// shownBy returns the claim of a pod on an address.
func shownBy(pod *census.Pod, ip netip.Addr) ShownBy {
	claim := pod.Claim(ip)
	return ShownBy{
		Namespace: pod.Ref.Namespace, Pod: pod.Ref.Name, Node: pod.Node, Source: claim.Source, Proved: claim.Proves, UID: pod.UID,
	}
}

// overlapText says for people what is wrong.
func (f Finding) overlapText() string {
	live := "no live pod shows an address of it"
	if len(f.Claims) > 0 {
		var by []string
		for _, s := range f.Claims {
			by = append(by, s.IP+" of "+s.ref().String())
		}
		live = "live in it: " + printable.Some(by)
	}
	return fmt.Sprintf("%s blocks %s and %s overlap, so that an address of %s may be given to two pods; %s. Keep the block whose size is the blockSize of its IPPool, and delete the pods of the other one",
		f.Backend, f.Pools[0], f.Pools[1], f.Range, live)
}
