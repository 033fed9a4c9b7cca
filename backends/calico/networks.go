package calico

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
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
	reserved, nodes, shared := b.lastListed()
	var unlisted error
	var reads sync.WaitGroup
	reads.Go(func() { shared.owned, unlisted = store.affinities(ctx) })
	stored, err := store.resources(ctx, "ippools")
	reads.Wait()
	if unlisted != nil && shared.unknown == "" {
		shared = shares{unknown: fmt.Sprintf("list the block affinities of Calico: %v", unlisted)}
	}
	if ipam.IsUnread(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list Calico's IPPools: %w", err)
	}
	ipPools := make([]ipPool, len(stored))
	for i, one := range stored {
		ipPools[i] = readIPPool(one)
	}
	networks, err := networksOf(pools, ipPools, reserved, nodes, shared)
	if _, ofFiles := store.(*files); shared.unknown != "" && !ofFiles {
		err = errors.Join(err, fmt.Errorf("which node may use which block: %s", shared.unknown))
	}
	return networks, err
}

// networksOf returns the IPPools as networks. The error names those that cannot
// be decoded. If there is one, it is unknown whether a block has no IPPool. The nodes are Calico's own.
func networksOf(pools []ipam.Pool, ipPools []ipPool, reserved ipReservations, nodes storeNodes, shared shares) ([]ipam.Network, error) {
	var errs []error
	ipPools = slices.DeleteFunc(slices.Clone(ipPools), func(p ipPool) bool {
		if p.broken != nil {
			errs = append(errs, fmt.Errorf("IPPool %s: %w", p.name, p.broken))
		}
		return p.broken != nil
	})
	kept, known := reserved.spans()
	withheld := reserved.withheld()
	all := make([]ipam.Network, len(ipPools))
	for i, p := range ipPools {
		all[i] = ipam.Network{
			Name:     p.name,
			Range:    p.cidr,
			Closed:   p.closed,
			Known:    known,
			Usable:   ipam.NewSpans(ipam.SpanOf(p.cidr)).Without(kept),
			Withheld: withheld,
			Default:  true,
			By:       p.by,
			Manual:   p.manual,
		}
	}
	left := ipam.Network{Name: poolless, Closed: "no IPPool contains its blocks", Known: known, Withheld: withheld}
	var stray []ipam.Span
	inside := make([][]netip.Prefix, len(ipPools))
	for _, pool := range pools {
		switch i := smallestContaining(pool.Range, ipPools); {
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

// smallestContaining returns the index of the smallest IPPool that contains a block, or -1.
func smallestContaining(block netip.Prefix, ipPools []ipPool) int {
	found := -1
	for i, p := range ipPools {
		contains := p.cidr.Bits() <= block.Bits() && p.cidr.Contains(block.Addr())
		if contains && (found < 0 || ipPools[found].cidr.Bits() < p.cidr.Bits()) {
			found = i
		}
	}
	return found
}

// An ipPool is an IPPool: a range that Calico cuts into blocks when nodes need some.
type ipPool struct {
	name      string
	cidr      netip.Prefix
	blockBits int // the prefix length of its blocks; 0 if it cannot be read, as oddSize says
	oddSize   error
	by        string // which nodes or namespaces get addresses of it; empty: all
	manual    bool   // only pods that name it get addresses of it
	closed    string // why pods get no address from it; empty if they do
	broken    error  // why it cannot be decoded; nil if it can
}

// workload is the use of an IPPool for pods, and manual the assignmentMode in which only pods that name the IPPool
// get addresses of it.
const (
	workload = "Workload"
	manual   = "Manual"
)

// selects reports whether a selector leaves something out.
func selects(selector string) bool {
	return selector != "" && strings.ReplaceAll(selector, " ", "") != "all()"
}

// readIPPool decodes an IPPool. It is closed as in libcalico-go's filterIPPool and
// filterPoolsByUse.
func readIPPool(stored resource) ipPool {
	var fields struct {
		Metadata struct {
			Name    string `json:"name"`
			Deleted string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Spec struct {
			CIDR        string          `json:"cidr"`
			BlockSize   json.RawMessage `json:"blockSize"`
			Nodes       string          `json:"nodeSelector"`
			Namespaces  string          `json:"namespaceSelector"`
			Assignment  string          `json:"assignmentMode"`
			Disabled    bool            `json:"disabled"`
			AllowedUses []string        `json:"allowedUses"`
		} `json:"spec"`
		Status struct {
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	}
	err := kube.Decode(stored.data, &fields)
	p := ipPool{name: cmp.Or(stored.name, fields.Metadata.Name)}
	if err != nil {
		p.broken = fmt.Errorf("decode: %w", err)
		return p
	}
	spec := fields.Spec
	cidr, err := netip.ParsePrefix(spec.CIDR)
	if err != nil {
		p.broken = fmt.Errorf("cidr: %w", err)
		return p
	}
	p.cidr = cidr.Masked()
	p.blockBits, p.oddSize = blockBits(p.cidr, spec.BlockSize)
	p.manual = spec.Assignment == manual
	switch {
	case selects(spec.Nodes):
		p.by = "nodeSelector " + spec.Nodes
	case selects(spec.Namespaces):
		p.by = "namespaceSelector " + spec.Namespaces
	}
	unavailable := false // as its controller in kube-controllers (3.32) says
	for _, c := range fields.Status.Conditions {
		unavailable = unavailable || c.Type == "Allocatable" && c.Status == "False"
	}
	switch {
	case fields.Metadata.Deleted != "":
		p.closed = "being deleted"
	case spec.Disabled:
		p.closed = "disabled"
	case len(spec.AllowedUses) > 0 && !slices.Contains(spec.AllowedUses, workload):
		p.closed = "allowedUses is " + strings.Join(spec.AllowedUses, ", ") + ", without " + workload
	case unavailable:
		p.closed = "its condition Allocatable is False"
	}
	return p
}

// blockBits returns the prefix length of the blocks of an IPPool, which Calico sets if the IPPool
// does not.
func blockBits(pool netip.Prefix, stored json.RawMessage) (int, error) {
	const hostBits = 6 // of a block, by default
	longest := pool.Addr().BitLen()
	text := string(stored)
	if text == "" || text == "null" || text == "0" {
		return longest - hostBits, nil
	}
	bits, err := strconv.Atoi(text)
	if err != nil || bits < pool.Bits() || bits > longest {
		return 0, fmt.Errorf("its blockSize %s is not the prefix length of blocks in %s", text, pool)
	}
	return bits, nil
}
