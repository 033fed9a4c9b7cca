package calico

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An excerpt is the part of a datastore that files contain. Unlike in a listing, a
// missing object may exist.
type excerpt struct {
	blocks, handles []object
	nodes           map[string]string // the Kubernetes names of Calico's nodes
	reserved        []ipReservation
	ipPools         []ipPool
}

// Offline returns the backend over the blocks and handles of either datastore among
// the documents, and the documents that are not Calico's IPAM. Without a block or a
// handle, the backend is nil.
func Offline(documents []ipam.Document) (found ipam.Backend, rest []ipam.Document) {
	e := excerpt{nodes: make(map[string]string)}
	for _, d := range documents {
		if !e.take(d) {
			rest = append(rest, d)
		}
	}
	if len(e.blocks)+len(e.handles) > 0 {
		found = ipam.Excerpt{Store: Name, Pools: e.pools(), Networks: e.networks()}
	}
	return found, rest
}

// take adds a document to the excerpt. It reports false if the document is not of
// Calico's IPAM. It skips Calico's other keys in etcd, such as affinities.
func (e *excerpt) take(d ipam.Document) bool {
	switch {
	case strings.HasPrefix(d.Key, blockPrefix) && strings.Contains(d.Key, "/block/"):
		e.blocks = append(e.blocks, object{kind: blocks, name: d.Key, raw: d.Data})
	case strings.HasPrefix(d.Key, handlePrefix):
		e.handles = append(e.handles, object{kind: handles, name: d.Key, raw: d.Data})
	case strings.HasPrefix(d.Key, nodePrefix):
		e.takeNode(strings.TrimPrefix(d.Key, nodePrefix), d.Data)
	case strings.HasPrefix(d.Key, ipResPrefix):
		e.reserved = append(e.reserved, readIPReservation(resource{strings.TrimPrefix(d.Key, ipResPrefix), d.Data}))
	case strings.HasPrefix(d.Key, ipPoolPrefix):
		e.ipPools = append(e.ipPools, readIPPool(resource{strings.TrimPrefix(d.Key, ipPoolPrefix), d.Data}))
	case strings.HasPrefix(d.Key, etcdRoot):
	case d.Is(groupV1, "IPAMBlock"), d.Is(groupV3, "IPAMBlock"):
		e.blocks = append(e.blocks, readOffline(blocks, d))
	case d.Is(groupV1, "IPReservation"), d.Is(groupV3, "IPReservation"):
		e.reserved = append(e.reserved, readIPReservation(resource{data: d.Data}))
	case d.Is(groupV1, "IPPool"), d.Is(groupV3, "IPPool"):
		e.ipPools = append(e.ipPools, readIPPool(resource{data: d.Data}))
	case d.Is(groupV1, "IPAMHandle"), d.Is(groupV3, "IPAMHandle"):
		e.handles = append(e.handles, readOffline(handles, d))
	case d.Key == "" && d.Kind == "" && looksLikeBlock(d.Data):
		e.blocks = append(e.blocks, object{kind: blocks, name: d.File + ": " + d.Place, raw: d.Data})
	default:
		return false
	}
	return true
}

// networks returns the IPPools of the files as networks; nil if the files have none.
func (e excerpt) networks() func([]ipam.Pool) ([]ipam.Network, error) {
	if len(e.ipPools) == 0 {
		return nil
	}
	return func(pools []ipam.Pool) ([]ipam.Network, error) { return networksOf(pools, e.ipPools, e.reserved) }
}

// takeNode adds the Kubernetes name of a node of Calico's. A node that cannot be
// read keeps the name that it has.
func (e *excerpt) takeNode(name string, data []byte) {
	if node, err := kubernetesNode(data); err == nil && node != "" {
		e.nodes[name] = node
	}
}

// readOffline reads a custom resource. If its metadata cannot be read, the object
// is named by its place in the files; decoding its spec then says what is wrong.
func readOffline(k kind, d ipam.Document) object {
	o, err := readObject(k, d.Data)
	if err != nil || o.name == "" {
		return object{kind: k, name: d.File + ": " + d.Place, raw: d.Data, root: "spec"}
	}
	return o
}

// looksLikeBlock reports whether a JSON document without a kind has the fields of a
// block, as etcd stores it.
func looksLikeBlock(data []byte) bool {
	var fields struct {
		CIDR        json.RawMessage `json:"cidr"`
		Allocations json.RawMessage `json:"allocations"`
	}
	return kube.Decode(data, &fields) == nil && fields.CIDR != nil && fields.Allocations != nil
}

// pools decodes the documents. A missing handle proves nothing, and a block that
// cannot be read does not affect the others. But a handle in the files may count
// addresses in a block that is not there, and these may belong to the same sandbox:
// then its addresses are unreadable.
func (e excerpt) pools() iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		l := newListing()
		l.take(reduced(e.handles, reduceHandle))
		l.take(reduced(e.blocks, reduceBlock))
		l.nodes, l.reserved = e.nodes, e.reserved
		for _, err := range l.errors() {
			if !yield(ipam.Pool{}, err) {
				return
			}
		}
		l.broken = nil
		for _, b := range l.blocks {
			u := l.finish(b)
			l.markMissingBlocks(u.Allocations)
			if !yield(u, nil) {
				return
			}
		}
		if left := l.emptyHandles(); len(left.Allocations) > 0 {
			l.markMissingBlocks(left.Allocations)
			yield(left, nil)
		}
	}
}

// reduced returns what reduce makes of each object.
func reduced(objects []object, reduce func(object) any) []any {
	all := make([]any, len(objects))
	for i, o := range objects {
		all[i] = reduce(o)
	}
	return all
}

// markMissingBlocks marks the allocations as unreadable whose handle counts
// addresses in a block that is not in the files, or that cannot be read there.
func (l *listing) markMissingBlocks(allocations []ipam.Allocation) {
	for i := range allocations {
		r := &allocations[i]
		id := r.Group
		if r.EmptyHandle {
			id = r.Key
		}
		if missing, ok := l.missing(id); ok && r.Unreadable == "" {
			r.Unreadable = "its sandbox may have another address in block " + missing.String() + ", which is not in the files: add it to the dump"
		}
	}
}
