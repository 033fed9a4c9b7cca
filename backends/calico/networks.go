package calico

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// poolless is the network of the blocks that no IPPool contains. Calico allocates from
// none of them, and deletes them when they are empty.
const poolless = "(no IPPool)"

// Survey implements ipam.Surveyor. A network is an IPPool with its blocks, and with the
// addresses that are in no block yet.
func (b *Backend) Survey(ctx context.Context, pools []ipam.Pool) ([]ipam.Network, error) {
	store, err := b.datastore(ctx)
	if err != nil {
		return nil, err
	}
	var shared shares
	var reads sync.WaitGroup
	reads.Go(func() { shared = readShares(ctx, store) })
	stored, err := store.resources(ctx, "ippools")
	reads.Wait()
	if err != nil {
		return nil, fmt.Errorf("list Calico's IPPools: %w", err)
	}
	ipPools := make([]ipPool, len(stored))
	for i, one := range stored {
		ipPools[i] = readIPPool(one)
	}
	reserved, nodes := b.lastListed()
	networks, err := networksOf(pools, ipPools, reserved, nodes, shared)
	if shared.unknown != "" {
		err = errors.Join(err, fmt.Errorf("which node may use which block: %s", shared.unknown))
	}
	return networks, err
}

// networksOf returns the IPPools as networks. The error names those that cannot
// be decoded. If there is one, it is unknown whether a block has no IPPool. The nodes are Calico's own.
func networksOf(pools []ipam.Pool, ipPools []ipPool, reserved []ipReservation, nodes storeNodes, shared shares) ([]ipam.Network, error) {
	var errs []error
	ipPools = slices.DeleteFunc(slices.Clone(ipPools), func(p ipPool) bool {
		if p.broken != nil {
			errs = append(errs, fmt.Errorf("IPPool %s: %w", p.name, p.broken))
		}
		return p.broken != nil
	})
	kept, known := reservedSpans(reserved)
	all := make([]ipam.Network, len(ipPools))
	for i, p := range ipPools {
		all[i] = ipam.Network{
			Name: p.name, Range: p.cidr, Closed: p.closed,
			Known: known, Usable: ipam.NewSpans(ipam.SpanOf(p.cidr)).Without(kept), Default: true,
		}
	}
	left := ipam.Network{Name: poolless, Closed: "no IPPool contains its blocks", Known: known}
	var stray []ipam.Span
	inside := make([][]netip.Prefix, len(ipPools))
	for _, pool := range pools {
		switch i := around(pool.Range, ipPools); {
		case !pool.Range.IsValid(): // the handles without an address
		case i < 0:
			left.Pools = append(left.Pools, pool.Name)
			stray = append(stray, ipam.SpanOf(pool.Range))
		default:
			all[i].Pools = append(all[i].Pools, pool.Name)
			inside[i] = append(inside[i], pool.Range)
		}
	}
	if len(left.Pools) > 0 && len(errs) == 0 {
		left.Usable = ipam.NewSpans(stray...).Without(kept)
		all = append(all, left)
	}
	for i, p := range ipPools {
		all[i].Division = shared.divide(p, inside[i], kept, known, nodes.kubernetesName)
		if p.oddSize != nil {
			errs = append(errs, fmt.Errorf("IPPool %s: %w", p.name, p.oddSize))
		}
	}
	return all, errors.Join(errs...)
}

// around returns the index of the smallest IPPool that contains a block, or -1.
func around(block netip.Prefix, ipPools []ipPool) int {
	found := -1
	for i, p := range ipPools {
		contains := p.cidr.Bits() <= block.Bits() && p.cidr.Contains(block.Addr())
		if contains && (found < 0 || ipPools[found].cidr.Bits() < p.cidr.Bits()) {
			found = i
		}
	}
	return found
}

// reservedSpans returns the addresses of the IPReservations. It reports false if the
// list of one cannot be decoded.
func reservedSpans(reserved []ipReservation) (spans ipam.Spans, known bool) {
	var all []ipam.Span
	for _, r := range reserved {
		if r.unknown() {
			return nil, false
		}
		for _, one := range r.ranges {
			all = append(all, ipam.SpanOf(one))
		}
	}
	return ipam.NewSpans(all...), true
}
