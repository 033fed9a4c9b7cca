package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// The kinds of facts of Calico's store.
const (
	kindAddress = "address"
	kindHandle  = "handle"
)

const (
	calicoNodes     = 3
	calicoBlockBits = 29
)

// A calicoIPAM is Calico's plugin on some nodes that share one pool of a few blocks: a node without
// a free block borrows addresses from the others'.
type calicoIPAM struct{ *calico.Datastore }

// newCalico returns the plugin, and creates its nodes and pool.
func newCalico(ctx context.Context, d *calico.Datastore) (calicoIPAM, error) {
	for place := range calicoNodes {
		if err := d.CreateNode(ctx, nodeName(place)); err != nil {
			return calicoIPAM{}, err
		}
	}
	pool := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 70, 0, 0}), bits)
	return calicoIPAM{d}, d.ApplyPool(ctx, "storm", pool, calicoBlockBits)
}

func nodeName(place int) string { return fmt.Sprintf("storm-%d", place) }

// place implements ipam: a pod may come back on another node.
func (c calicoIPAM) place(random *rand.Rand, _ int) int { return random.IntN(calicoNodes) }

// of returns the sandbox for Calico's programs.
func (c calicoIPAM) of(s *sandbox) calico.Sandbox {
	return calico.Sandbox{Namespace: namespace, Pod: s.pod, Node: nodeName(s.place), ContainerID: s.id}
}

// add implements ipam.
func (c calicoIPAM) add(ctx context.Context, s *sandbox) error {
	ips, err := c.Add(ctx, c.of(s))
	if err != nil {
		return err
	}
	if len(ips) != 1 {
		return fmt.Errorf("ADD of %s gave %v, want one address", s, ips)
	}
	s.ip = ips[0]
	return nil
}

// del implements ipam.
func (c calicoIPAM) del(ctx context.Context, s *sandbox) error { return c.Del(ctx, c.of(s)) }

// full implements ipam.
func (c calicoIPAM) full(err error) bool {
	return strings.Contains(err.Error(), "No IPs available in pools")
}

// scheduled implements ipam.
func (c calicoIPAM) scheduled(s *sandbox) []cluster.PodOption {
	return []cluster.PodOption{cluster.Phase("Pending"), cluster.OnNode(nodeName(s.place))}
}

// running implements ipam.
func (c calicoIPAM) running(s *sandbox) []cluster.PodOption {
	return append(c.of(s).PodOptions(s.ip), cluster.Phase("Running"))
}

// owed implements ipam.
func (c calicoIPAM) owed(s *sandbox) map[fact]string {
	handle, block := c.of(s).Handle(), netip.PrefixFrom(s.ip, calicoBlockBits).Masked()
	return map[fact]string{
		{kindAddress, s.ip.String()}:                              handle + " " + namespace + "/" + s.pod,
		{kindHandle, c.HandleName(handle) + " " + block.String()}: "1",
	}
}

// look implements ipam.
func (c calicoIPAM) look(ctx context.Context) (view, error) {
	v := view{owners: map[fact]string{}}
	blocks, err := c.List(ctx, calico.Block)
	if err != nil {
		return v, err
	}
	for name, o := range blocks {
		err := calico.Invariants(o.Content)
		if err == nil {
			err = addresses(o.Content, v.owners)
		}
		if err != nil {
			v.broken = append(v.broken, fmt.Sprintf("block %s: %v", name, err))
		}
	}
	handles, err := c.List(ctx, calico.Handle)
	if err != nil {
		return v, err
	}
	for name, o := range handles {
		var h struct{ Block map[string]int }
		if err := json.Unmarshal([]byte(o.Content), &h); err != nil {
			v.broken = append(v.broken, fmt.Sprintf("handle %s: %v", name, err))
		}
		if len(h.Block) == 0 {
			v.owners[fact{kindHandle, name}] = "no block"
		}
		for block, count := range h.Block {
			v.owners[fact{kindHandle, name + " " + block}] = fmt.Sprint(count)
		}
	}
	return v, nil
}

// addresses records who has the addresses of a block.
func addresses(content string, owners map[fact]string) error {
	var b struct {
		CIDR        netip.Prefix
		Allocations []*int
		Attributes  []struct {
			Handle    string `json:"handle_id"`
			Secondary map[string]string
		}
	}
	if err := json.Unmarshal([]byte(content), &b); err != nil {
		return err
	}
	ip := b.CIDR.Addr()
	for _, index := range b.Allocations {
		if index != nil {
			a := b.Attributes[*index]
			owners[fact{kindAddress, ip.String()}] = a.Handle + " " + a.Secondary["namespace"] + "/" + a.Secondary["pod"]
		}
		ip = ip.Next()
	}
	return nil
}

// lost implements ipam: nothing excuses Calico's plugin.
func (c calicoIPAM) lost(finding, []release) string { return "" }
