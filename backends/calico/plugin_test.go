package calico

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An ipamPlugin writes a fakeStore as Calico's IPAM plugin does, in the same order: ADD
// writes the handle and then the block, and DEL the block and then the handle. It
// is a backendtest.Store.
type ipamPlugin struct {
	*fakeStore
	mu    sync.Mutex
	pools []string
}

// The fields that Calico knows. It decodes and encodes an object as a whole, so
// unknown fields are lost.
type (
	calicoBlock struct {
		CIDR        netip.Prefix      `json:"cidr"`
		Affinity    string            `json:"affinity"`
		Allocations []*int            `json:"allocations"`
		Unallocated []int             `json:"unallocated"`
		Attributes  []calicoAttribute `json:"attributes"`
		Sequence    uint64            `json:"sequenceNumber"`
		Sequences   map[string]uint64 `json:"sequenceNumberForAllocation"`
		Deleted     bool              `json:"deleted"`
	}
	calicoAttribute struct {
		Handle string            `json:"handle_id"`
		Owner  map[string]string `json:"secondary"`
	}
	calicoHandle struct {
		ID      string         `json:"handleID,omitempty"`
		Blocks  map[string]int `json:"block"`
		Deleted bool           `json:"deleted"`
	}
)

func newPlugin(s *fakeStore) *ipamPlugin { return &ipamPlugin{fakeStore: s} }

// Backend implements backendtest.Store.
func (p *ipamPlugin) Backend() ipam.Backend { return p.backend() }

// edit reads an object, changes it and writes it, until there is no conflict. An
// object that does not exist begins with the zero value. If change returns false,
// the object is deleted.
func edit[T any](s *fakeStore, k kind, id string, change func(*T) bool) error {
	for {
		var value T
		o, ok := s.look(k, id)
		if ok {
			if err := json.Unmarshal(o.value(), &value); err != nil {
				return err
			}
		}
		keep := change(&value)
		text, err := json.Marshal(value)
		switch {
		case err != nil:
			return err
		case !ok && !keep:
			return nil
		case !ok:
			if s.create(k, id, string(text)) {
				return nil
			}
			continue
		case !keep:
			o.raw = nil
		case o.root != "":
			o.raw = []byte(strings.Replace(string(o.raw), string(o.value()), string(text), 1))
		default:
			o.raw = text
		}
		if _, err := s.swap(o); !errors.Is(err, errConflict) && !errors.Is(err, errGone) {
			return err
		}
	}
}

// count adds n to a handle's count of addresses in a block.
func (p *ipamPlugin) count(id string, cidr netip.Prefix, n int) error {
	return edit(p.fakeStore, handles, id, func(h *calicoHandle) bool {
		if h.Blocks == nil {
			h.Blocks = make(map[string]int)
		}
		if p.shape.name == "kubernetes" {
			h.ID = id
		}
		h.Blocks[cidr.String()] += n
		maps.DeleteFunc(h.Blocks, func(_ string, n int) bool { return n <= 0 })
		return len(h.Blocks) > 0
	})
}

// handleID returns the ID of a sandbox's handle.
func handleID(owner ipam.Owner) string { return "k8s-pod-network." + owner.Sandbox }

// network returns the CIDR of a pool's block: the nth pool has 10.n.0.0/26.
func (p *ipamPlugin) network(pool string) netip.Prefix {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := slices.Index(p.pools, pool)
	if n < 0 {
		n = len(p.pools)
		p.pools = append(p.pools, pool)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n)}), 26)
}

// Reserve implements backendtest.Store.
func (p *ipamPlugin) Reserve(pool string, owner ipam.Owner) (ipam.Allocation, error) {
	return p.add(p.network(pool), owner)
}

// add allocates an address of a block for a sandbox.
func (p *ipamPlugin) add(cidr netip.Prefix, owner ipam.Owner) (ipam.Allocation, error) {
	id := handleID(owner)
	if err := p.count(id, cidr, 1); err != nil {
		return ipam.Allocation{}, err
	}
	taken := -1
	err := edit(p.fakeStore, blocks, cidr.String(), func(b *calicoBlock) bool {
		if !b.CIDR.IsValid() {
			*b = newCalicoBlock(cidr)
		}
		if taken = -1; len(b.Unallocated) > 0 {
			taken, b.Unallocated = b.Unallocated[0], b.Unallocated[1:]
			index := len(b.Attributes)
			b.Allocations[taken] = &index
			b.Attributes = append(b.Attributes, calicoAttribute{id, map[string]string{
				"namespace": owner.Pod.Namespace, "pod": owner.Pod.Name, "node": owner.Node, "timestamp": time.Now().UTC().String()}})
			b.Sequences[strconv.Itoa(taken)] = b.Sequence
		}
		b.Sequence++
		return true
	})
	if err == nil && taken < 0 {
		err = fmt.Errorf("block %s is full", cidr)
	}
	if err != nil {
		return ipam.Allocation{}, errors.Join(err, p.count(id, cidr, -1))
	}
	return ipam.Allocation{
		Pool: cidr.String(), Key: strconv.Itoa(taken), IP: block{cidr: cidr}.address(taken),
		Owner: ipam.Owner{Pod: owner.Pod, Sandbox: owner.Sandbox, Node: owner.Node},
	}, nil
}

// newCalicoBlock returns a block whose addresses are all free.
func newCalicoBlock(cidr netip.Prefix) calicoBlock {
	size := 1 << (cidr.Addr().BitLen() - cidr.Bits())
	b := calicoBlock{
		CIDR: cidr, Affinity: "host:node-1", Allocations: make([]*int, size), Attributes: []calicoAttribute{},
		Sequence: 1800000000000000000, Sequences: make(map[string]uint64),
	}
	for ordinal := range size {
		b.Unallocated = append(b.Unallocated, ordinal)
	}
	return b
}

// Free implements backendtest.Store.
func (p *ipamPlugin) Free(pool string, owner ipam.Owner) error {
	id, cidr := handleID(owner), p.network(pool)
	freed := 0
	err := edit(p.fakeStore, blocks, cidr.String(), func(b *calicoBlock) bool {
		freed = 0
		for ordinal, index := range b.Allocations {
			if index == nil || b.Attributes[*index].Handle != id {
				continue
			}
			freed++
			gone := *index
			b.Attributes = slices.Delete(b.Attributes, gone, gone+1)
			b.Allocations[ordinal] = nil
			b.Unallocated = append(b.Unallocated, ordinal)
			delete(b.Sequences, strconv.Itoa(ordinal))
			for _, other := range b.Allocations {
				if other != nil && *other > gone {
					*other--
				}
			}
		}
		b.Sequence++
		return true
	})
	if err != nil || freed == 0 {
		return err
	}
	return p.count(id, cidr, -freed)
}

// Obscure implements backendtest.Obscurer.
func (p *ipamPlugin) Obscure(pool string) error {
	text := fmt.Sprintf(`{"metadata":{"name":"odd"},"spec":{"reservedCIDRs":["nonsense",%q]}}`, p.network(pool))
	p.more["ipreservations"] = []resource{{data: []byte(text)}}
	return nil
}

// Snapshot implements backendtest.Store. The text of an allocation includes its
// handle's counts. A handle without an allocation has its own text.
func (p *ipamPlugin) Snapshot() (map[string]string, error) {
	p.fakeStore.mu.Lock()
	defer p.fakeStore.mu.Unlock()
	snapshot, counts := make(map[string]string), make(map[string]string)
	for _, stored := range p.objects {
		if stored.kind == handles {
			counts[stored.id] = string(stored.value())
		}
	}
	used := make(map[string]bool)
	for _, stored := range p.objects {
		if stored.kind != blocks {
			continue
		}
		var b calicoBlock
		if err := json.Unmarshal(stored.value(), &b); err != nil {
			return nil, err
		}
		snapshot["block "+stored.id] = fmt.Sprint(b.Affinity, b.Deleted)
		for ordinal, index := range b.Allocations {
			if index == nil {
				continue
			}
			a, key := b.Attributes[*index], strconv.Itoa(ordinal)
			used[a.Handle] = true
			snapshot[backendtest.Place(ipam.Allocation{Pool: stored.id, Key: key})] = fmt.Sprint(a, b.Sequences[key], counts[a.Handle])
		}
	}
	for id, text := range counts {
		if !used[id] {
			snapshot["handle "+id] = text
		}
	}
	return snapshot, nil
}

// Fumble implements backendtest.Fumbler.
func (p *ipamPlugin) Fumble() {
	var once sync.Once
	p.onRequest(func(request string) (err error) {
		if strings.HasPrefix(request, "delete handle") {
			once.Do(func() { err = errRefused })
		}
		return err
	})
}
