package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// A pool is a range of Whereabouts, with the addresses that its attachment hands out.
type pool struct {
	plugin.Network
	namespace string // of the attachment
}

// ranges are those of Whereabouts: the second is nearly full, the third is full.
var ranges = []pool{
	{plugin.Network{Name: "storage", Range: "10.200.0.0/22", RangeStart: "10.200.0.10", RangeEnd: "10.200.3.250", Exclude: []string{"10.200.1.0/26"}}, "shop"},
	{plugin.Network{Name: "media", Range: "192.168.50.0/24", RangeStart: "192.168.50.10", RangeEnd: "192.168.50.240"}, "media"},
	{plugin.Network{Name: "scada", Range: "172.18.178.192/27", RangeStart: "172.18.178.196", RangeEnd: "172.18.178.222"}, "monitoring"},
}

// at returns the address at an offset in the range.
func (p pool) at(offset int) netip.Addr {
	ip := netip.MustParsePrefix(p.Range).Addr()
	for range offset {
		ip = ip.Next()
	}
	return ip
}

// offsets are those of the addresses that are handed out.
func (p pool) offsets() []int {
	first, last := netip.MustParseAddr(p.RangeStart), netip.MustParseAddr(p.RangeEnd)
	var all []int
	for offset, ip := 0, p.at(0); ip.Compare(last) <= 0; offset, ip = offset+1, ip.Next() {
		excluded := false
		for _, cidr := range p.Exclude {
			excluded = excluded || netip.MustParsePrefix(cidr).Contains(ip)
		}
		if ip.Compare(first) >= 0 && !excluded {
			all = append(all, offset)
		}
	}
	return all
}

// objectName is that of the IPPool.
func (p pool) objectName() string {
	cidr := netip.MustParsePrefix(p.Range)
	return fmt.Sprintf("%s-%d", cidr.Addr(), cidr.Bits())
}

// stored reports whether the stores have the sandbox in the phase.
func (s *sandbox) stored(phase int) bool { return s.from <= phase && (s.until == 0 || phase < s.until) }

// spec is the content of a block in a phase, and the handles of its addresses.
func (b *block) spec(phase int) (content string, handles []string, err error) {
	allocations, unallocated, attributes := make([]any, blockSize), []int{}, []any{}
	// Each ADD wrote the block once.
	const began = 1_800_000_000_000_000_000
	sequences := map[string]uint64{}
	for ordinal, s := range b.owners {
		if s == nil || !s.stored(phase) {
			unallocated = append(unallocated, ordinal)
			continue
		}
		handle := calico.Sandbox{ContainerID: s.id}.Handle()
		owner := map[string]string{
			"namespace": s.namespace, "pod": s.pod, "node": nodeName(s.node), "timestamp": s.born.UTC().Round(0).String(),
		}
		if b.tunnel[ordinal] {
			handle = "vxlan-tunnel-addr-" + nodeName(s.node)
			owner = map[string]string{"type": "vxlanTunnelAddress", "node": nodeName(s.node)}
		}
		allocations[ordinal] = len(attributes)
		attributes = append(attributes, map[string]any{"handle_id": handle, "secondary": owner})
		sequences[strconv.Itoa(ordinal)] = began + uint64(ordinal)
		handles = append(handles, handle)
	}
	text, err := json.Marshal(map[string]any{
		"cidr": b.cidr, "affinity": "host:" + nodeName(b.node), "strictAffinity": false, "deleted": false,
		"allocations": allocations, "unallocated": unallocated, "attributes": attributes,
		"sequenceNumber": uint64(began + blockSize), "sequenceNumberForAllocation": sequences,
	})
	if err == nil {
		err = calico.Invariants(string(text))
	}
	return string(text), handles, err
}

// putBlocks writes the blocks that another phase changed, and the new handles.
func (l *loader) putBlocks(ctx context.Context, phase int) error {
	var writes []func() error
	for i, b := range l.blocks {
		content, handles, err := b.spec(phase)
		if err != nil {
			return err
		}
		if content == l.written[i] {
			continue
		}
		if l.written[i] == "" {
			writes = append(writes, func() error { return l.PutAffinity(ctx, nodeName(b.node), b.cidr, "confirmed") })
		}
		l.written[i] = content
		writes = append(writes, func() error { return l.Put(ctx, calico.Block, l.BlockName(b.cidr), content) })
		for _, handle := range handles {
			if !l.handles[handle] {
				l.handles[handle] = true
				writes = append(writes, func() error { return l.PutHandle(ctx, handle, map[netip.Prefix]int{b.cidr: 1}) })
			}
		}
	}
	return all(writes)
}

// putRanges writes the pools of Whereabouts and the overlapping-range reservations.
func (l *loader) putRanges(ctx context.Context, phase int) error {
	client := l.Cluster.Whereabouts.WhereaboutsV1alpha1()
	var writes []func() error
	for i, r := range ranges {
		allocations := map[string]v1alpha1.IPAllocation{}
		for _, s := range l.attachedTo(i) {
			// A sandbox whose pod is gone today had the address before, too.
			if s.until > 0 && !s.stored(phase) {
				continue
			}
			ref := s.namespace + "/" + s.pod
			allocations[strconv.Itoa(r.offset(s.second))] = v1alpha1.IPAllocation{ContainerID: s.id, PodRef: ref, IfName: "net1"}
			if name := s.second.String(); !l.reserved[name] {
				l.reserved[name] = true
				writes = append(writes, func() error {
					_, err := client.OverlappingRangeIPReservations(cluster.PoolNamespace).Create(ctx, &v1alpha1.OverlappingRangeIPReservation{
						ObjectMeta: metav1.ObjectMeta{Name: name},
						Spec:       v1alpha1.OverlappingRangeIPReservationSpec{ContainerID: s.id, PodRef: ref, IfName: "net1"},
					}, metav1.CreateOptions{})
					return err
				})
			}
		}
		writes = append(writes, func() error { return l.putPool(ctx, r, allocations) })
	}
	return all(writes)
}

func (l *loader) putPool(ctx context.Context, r pool, allocations map[string]v1alpha1.IPAllocation) error {
	api := l.Cluster.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace)
	found, err := api.Get(ctx, r.objectName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, &v1alpha1.IPPool{
			ObjectMeta: metav1.ObjectMeta{Name: r.objectName()},
			Spec:       v1alpha1.IPPoolSpec{Range: r.Range, Allocations: allocations},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	found.Spec.Allocations = allocations
	_, err = api.Update(ctx, found, metav1.UpdateOptions{})
	return err
}

func (p pool) offset(ip netip.Addr) int {
	for offset := 0; ; offset++ {
		if p.at(offset) == ip {
			return offset
		}
	}
}

// writers is how many objects are written at a time.
const writers = 24

// all does the writes, some at a time.
func all(writes []func() error) error {
	return parallel.Each(writers, writes, func(_ int, write func() error) error { return write() })
}
