package calico

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An excerpt is what files have of a datastore. Unlike in a listing, what is
// missing may only have been left out.
type excerpt struct {
	blocks, handles []object
	nodes           map[string]string // the Kubernetes names of Calico's nodes
	reserved        []ipAllocation
	unknown         error // what is reserved beside
}

// Offline returns the backend over the blocks and handles among the documents, of
// either datastore, and the documents that are of no use to it. Without any block
// or handle the backend is nil.
func Offline(documents []reaper.Document) (found reaper.Backend, rest []reaper.Document) {
	e := excerpt{nodes: make(map[string]string)}
	for _, d := range documents {
		if !e.take(d) {
			rest = append(rest, d)
		}
	}
	if len(e.blocks)+len(e.handles) > 0 {
		found = reaper.Excerpt{Store: Name, Pools: e.pools()}
	}
	return found, rest
}

// take sorts a document in, unless it is of no interest to Calico's IPAM. What
// stands beside blocks and handles in etcd, such as affinities, is passed over.
func (e *excerpt) take(d reaper.Document) bool {
	switch {
	case strings.HasPrefix(d.Key, blockPrefix) && strings.Contains(d.Key, "/block/"):
		e.blocks = append(e.blocks, object{kind: blocks, name: d.Key, raw: d.Data})
	case strings.HasPrefix(d.Key, handlePrefix):
		e.handles = append(e.handles, object{kind: handles, name: d.Key, raw: d.Data})
	case strings.HasPrefix(d.Key, nodePrefix):
		e.takeNode(strings.TrimPrefix(d.Key, nodePrefix), d.Data)
	case strings.HasPrefix(d.Key, ipResPrefix):
		e.takeAllocation(strings.TrimPrefix(d.Key, ipResPrefix), d.Data)
	case strings.HasPrefix(d.Key, etcdRoot):
	case d.Is(groupV1, "IPAMBlock"), d.Is(groupV3, "IPAMBlock"):
		e.blocks = append(e.blocks, readOffline(blocks, d))
	case d.Is(groupV1, "IPReservation"), d.Is(groupV3, "IPReservation"):
		e.takeAllocation("", d.Data)
	case d.Is(groupV1, "IPAMHandle"), d.Is(groupV3, "IPAMHandle"):
		e.handles = append(e.handles, readOffline(handles, d))
	case d.Key == "" && d.Kind == "" && looksLikeBlock(d.Data):
		e.blocks = append(e.blocks, object{kind: blocks, name: d.File + ": " + d.Place, raw: d.Data})
	default:
		return false
	}
	return true
}

// takeNode learns a node's name in Kubernetes. One that cannot be read keeps the
// name that it has.
func (e *excerpt) takeNode(name string, data []byte) {
	if node, err := kubernetesNode(data); err == nil && node != "" {
		e.nodes[name] = node
	}
}

// takeReservation learns what is kept from being given away.
func (e *excerpt) takeAllocation(name string, data []byte) {
	r, err := readIPAllocation(name, data)
	e.reserved = append(e.reserved, r)
	e.unknown = errors.Join(e.unknown, err)
}

// readOffline reads a custom resource. If it has no readable metadata, it goes by
// its place: what else is in it says what is wrong.
func readOffline(k kind, d reaper.Document) object {
	o, err := readObject(k, d.Data)
	if err != nil || o.name == "" {
		return object{kind: k, name: d.File + ": " + d.Place, raw: d.Data, root: "spec"}
	}
	return o
}

// looksLikeBlock reports whether JSON of which nothing says what it is has the
// fields of a block, as etcd stores it.
func looksLikeBlock(data []byte) bool {
	var fields struct {
		CIDR        json.RawMessage `json:"cidr"`
		Allocations json.RawMessage `json:"allocations"`
	}
	return kube.Decode(data, &fields) == nil && fields.CIDR != nil && fields.Allocations != nil
}

// pools understands what was taken. That an address has no handle here proves
// nothing, nor does an unreadable block spoil what is known of the others; but
// where the handle is here and counts addresses in a block that is not, these may
// be of the same sandbox.
func (e excerpt) pools() iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) {
		if e.unknown != nil {
			yield(reaper.Pool{}, e.unknown)
			return
		}
		l := newListing(e.blocks, e.handles, e.nodes)
		l.reserved = e.reserved
		for _, err := range l.broken {
			if !yield(reaper.Pool{}, err) {
				return
			}
		}
		l.broken = nil
		l.handles = l.uniqueHandles()
		for _, b := range l.blocks {
			u := l.pool(b)
			l.doubtMissing(u.Allocations)
			if !yield(u, nil) {
				return
			}
		}
		if left := l.emptyHandles(); len(left.Allocations) > 0 {
			l.doubtMissing(left.Allocations)
			yield(left, nil)
		}
	}
}

// uniqueHandles returns each handle once, in the last form that was read.
func (l listing) uniqueHandles() []handle {
	if len(l.byID) == len(l.handles) {
		return l.handles
	}
	var unique []handle
	seen := make(map[string]bool, len(l.handles))
	for _, h := range l.handles {
		if !seen[h.id] {
			seen[h.id] = true
			unique = append(unique, l.byID[h.id])
		}
	}
	return unique
}

// doubtMissing marks the allocations whose handle counts addresses in a block
// that is not in the files, or that cannot be read there.
func (l listing) doubtMissing(allocations []reaper.Allocation) {
	for i := range allocations {
		r := &allocations[i]
		id := r.Group
		if r.EmptyHandle {
			id = r.Key
		}
		if missing, ok := l.missing(id); ok && r.Unreadable == "" {
			r.Unreadable = "its sandbox may have an address in block " + missing.String() + " too, which the files do not have"
		}
	}
}
