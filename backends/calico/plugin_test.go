package calico

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An ipamPlugin writes a fakeStore in the order of Calico's IPAM plugin: ADD writes the
// handle and then the block, and DEL the block and then the handle. It edits them like
// the backend; the integration tests have the real plugin. It is a backendtest.Store.
type ipamPlugin struct {
	*fakeStore
	mu    sync.Mutex
	pools []string
}

func newPlugin(s *fakeStore) *ipamPlugin { return &ipamPlugin{fakeStore: s} }

// Backend implements backendtest.Store.
func (p *ipamPlugin) Backend() ipam.Backend { return p.backend() }

// edit reads an object, changes it and writes it, until there is no conflict. An object
// that does not exist begins with the value.
func (p *ipamPlugin) edit(k kind, id, value string, change func(object) (object, error)) error {
	for {
		o, ok := p.look(k, id)
		if !ok {
			o = p.stored(k, id, value)
		}
		after, err := change(o)
		switch {
		case err != nil, !ok && after.raw == nil:
			return err
		case !ok && p.create(k, id, string(after.value())):
			return nil
		case !ok:
			continue
		}
		if _, err := p.swap(after); !errors.Is(err, errConflict) && !errors.Is(err, errGone) {
			return err
		}
	}
}

// count adds n to a handle's count of addresses in a block.
func (p *ipamPlugin) count(id string, cidr netip.Prefix, n int) error {
	empty := strings.ReplaceAll(handleJSON(p.shape, `{}`), firstHandle, id)
	return p.edit(handles, id, empty, func(o object) (object, error) {
		h, err := readHandle(o)
		if err == nil {
			h, err = h.withCount(cidr, h.counts[cidr]+n)
		}
		return h.object, err
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
	attribute, err := json.Marshal(map[string]any{"handle_id": id, "secondary": map[string]string{
		"namespace": owner.Pod.Namespace, "pod": owner.Pod.Name, "node": owner.Node, "timestamp": time.Now().UTC().String(),
	}})
	if err == nil {
		err = p.count(id, cidr, 1)
	}
	if err != nil {
		return ipam.Allocation{}, err
	}
	var taken int
	err = p.edit(blocks, cidr.String(), emptyBlock(cidr), func(o object) (object, error) {
		b, err := readBlock(o)
		if err == nil && len(b.unallocated) == 0 {
			err = fmt.Errorf("block %s is full", cidr)
		}
		if err != nil {
			return o, err
		}
		taken = b.unallocated[0]
		after, err := b.restore([]recordedAllocation{{ordinal: taken, record: record{Attribute: string(attribute), Sequence: &b.sequence}}})
		return after.object, err
	})
	if err != nil {
		return ipam.Allocation{}, errors.Join(err, p.count(id, cidr, -1))
	}
	return ipam.Allocation{
		Pool: cidr.String(), Key: strconv.Itoa(taken), IP: block{cidr: cidr}.address(taken),
		Owner: ipam.Owner{Pod: owner.Pod, Sandbox: owner.Sandbox, Node: owner.Node},
	}, nil
}

// emptyBlock returns the value of a block whose addresses are all free.
func emptyBlock(cidr netip.Prefix) string {
	size := 1 << (cidr.Addr().BitLen() - cidr.Bits())
	var free []string
	for ordinal := range size {
		free = append(free, strconv.Itoa(ordinal))
	}
	return fmt.Sprintf(`{"cidr":%q,"affinity":"host:node-1","allocations":[%s],"unallocated":[%s],"attributes":[],`+
		`"sequenceNumber":1800000000000000000,"sequenceNumberForAllocation":{},"deleted":false}`,
		cidr, strings.Repeat("null,", size-1)+"null", strings.Join(free, ","))
}

// Free implements backendtest.Store.
func (p *ipamPlugin) Free(pool string, owner ipam.Owner) error {
	id, cidr := handleID(owner), p.network(pool)
	var freed []int
	err := p.edit(blocks, cidr.String(), emptyBlock(cidr), func(o object) (object, error) {
		b, err := readBlock(o)
		if err != nil {
			return o, err
		}
		freed = nil
		for ordinal := range b.allocations {
			if b.handleOf(ordinal) == id {
				freed = append(freed, ordinal)
			}
		}
		after, err := b.release(freed)
		return after.object, err
	})
	if err != nil || len(freed) == 0 {
		return err
	}
	return p.count(id, cidr, -len(freed))
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
		b, _ := readBlock(stored.object) // a test may have broken it
		snapshot["block "+stored.id] = fmt.Sprint(b.node, b.deleted)
		for ordinal, index := range b.allocations {
			if index == nil {
				continue
			}
			id, key := b.handleOf(ordinal), strconv.Itoa(ordinal)
			used[id] = true
			snapshot[backendtest.Place(ipam.Allocation{Pool: stored.id, Key: key})] = fmt.Sprintf("%s %d %s", b.attributes[*index], b.sequences[key], counts[id])
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
