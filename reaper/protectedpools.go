package reaper

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// overAll names what protects every address of the pool; it is empty if no objects do.
// The objects together must name as many of its addresses as the pool can give to pods.
func (p *protections) overAll(pool Pool) string {
	switch {
	case p.unread != "":
		return p.unread
	case len(p.all) > 0:
		return p.all[0].Name() + " may name it: " + p.all[0].Unreadable
	case pool.Capacity == nil || pool.Capacity.Cmp(big.NewInt(int64(len(p.byIP)))) > 0:
		return ""
	}
	named := make(map[string]bool)
	addresses := 0
	for ip, objects := range p.byIP {
		if !pool.Range.Contains(ip) {
			continue
		}
		addresses++
		for _, o := range objects {
			named[o.Name()] = true
		}
	}
	if pool.Capacity.Cmp(big.NewInt(int64(addresses))) > 0 {
		return ""
	}
	all := make([]string, 0, len(named))
	for name := range named {
		all = append(all, name)
	}
	slices.Sort(all)
	if len(all) > 1 {
		return fmt.Sprintf("%s and %d more", all[0], len(all)-1)
	}
	return all[0]
}

// ProtectedPools returns what protects each pool of which every address is protected, by its
// backend and its name, if the pool has an address without an owner that is kept for that. The
// warnings name these pools.
//
// It does not count a pool whose ownerless addresses all happen to be protected. That is
// the usual state of a pool with a reserved address: all other leaks of it are released.
func ProtectedPools(inv Inventory, decisions []Decision) (found map[[2]string]string, warnings []string) {
	kept := make(map[[2]string]bool)
	for _, d := range decisions {
		if d.Reason == Protected && d.Allocation.HoldsAddress() {
			kept[[2]string{d.Allocation.Backend, d.Allocation.Pool}] = true
		}
	}
	if len(kept) == 0 {
		return nil, nil
	}
	objects := protectionsOf(inv)
	found = make(map[[2]string]string)
	names := make(map[string][]string) // of the pools, by what protects them
	var order []string
	for _, l := range inv.Listings {
		for _, pool := range l.Pools {
			id := [2]string{l.Backend, pool.Name}
			if !kept[id] || !pool.Range.IsValid() {
				continue
			}
			by := pool.Protected
			if by == "" {
				by = objects.overAll(pool)
			}
			if by == "" {
				continue
			}
			found[id] = by
			if names[by] == nil {
				order = append(order, by)
			}
			names[by] = append(names[by], l.Backend+" "+pool.Name)
		}
	}
	for _, by := range order {
		warnings = append(warnings, "nothing of "+printable.Some(names[by])+" is released, since every address is protected: "+by)
	}
	return found, warnings
}
