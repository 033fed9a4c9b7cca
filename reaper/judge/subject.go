package judge

import (
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// terms returns the policy's terms for the allocation. For an allocation that names no pod and
// holds no address, or is blank, no rule that matches by the names of pods counts: it would keep it
// for ever.
func (c *Case) terms() policy.Terms {
	if !c.termsKnown {
		c.policyTerms = c.policy.Terms(c.subject())
		c.termsKnown = true
	}
	return c.policyTerms
}

// subject returns the allocation as rules of the policy ask about it.
func (c *Case) subject() policy.Subject {
	s := policy.Subject{
		Namespace: c.Owner.Pod.Namespace, Pod: c.Owner.Pod.Name, Backend: c.Backend,
		Podless: (!c.HoldsAddress() || c.Blank) && c.Owner.Pod == (ipam.PodRef{}), Placeless: !c.HoldsAddress(),
	}
	if len(c.policy.Rules) == 0 || s.Placeless {
		return s
	}
	if c.knowsNode() {
		s.Nodes = slices.Collect(c.nodesOf())
	}
	s.Pools, s.PoolNames = c.poolsOfRules()
	return s
}

// poolsOfRules returns the pools in which the allocation may be, for the rules of a policy. One that
// has no range itself, such as an overlapping-range reservation, counts as in each of the pools around
// its address, which then have its names, too: it must not be released by other terms than the entry that
// it belongs to.
func (c *Case) poolsOfRules() (pools []policy.Pool, names []string) {
	own, listed := c.pools[ipam.PoolRef{Backend: c.Backend, Name: c.Pool}]
	switch {
	case !listed:
		return nil, nil
	case own.Range.IsValid() || !c.IP.IsValid():
		return []policy.Pool{own}, nil
	}
	for _, bits := range c.bits {
		if at, err := c.IP.Prefix(bits); err == nil {
			pools = append(pools, c.ranged[at]...)
		}
	}
	if c.incomplete {
		pools = append(pools, policy.Pool{Unsure: true})
	}
	if len(pools) == 0 {
		own.Range = netip.PrefixFrom(c.IP, c.IP.BitLen())
		return []policy.Pool{own}, nil
	}
	return pools, own.Names
}

// poolsOfRules returns the pools of an inventory as rules of the policy ask about them. The names of
// networks are known only of a store that was surveyed.
func poolsOfRules(inv ipam.Inventory) map[ipam.PoolRef]policy.Pool {
	pools := make(map[ipam.PoolRef]policy.Pool)
	for _, l := range inv.Listings {
		for _, p := range l.Pools {
			pools[ipam.PoolRef{Backend: l.Backend, Name: p.Name}] = policy.Pool{
				Names: []string{p.Name, ShortPool(p.Name)}, Range: p.Range, Unsure: !l.Surveyed,
			}
		}
		for _, n := range l.Networks {
			for _, name := range n.Pools {
				ref := ipam.PoolRef{Backend: l.Backend, Name: name}
				if p, ok := pools[ref]; ok {
					p.Names, p.Attachments = append(p.Names, n.Name), append(p.Attachments, n.Attachments...)
					p.MayBeOf = append(p.MayBeOf, n.Unsure...)
					pools[ref] = p
				}
			}
		}
	}
	return pools
}
