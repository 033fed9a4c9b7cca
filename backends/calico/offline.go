package calico

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An excerpt is the part of a datastore that files contain. Unlike in a
// datastore, a missing object may exist.
type excerpt struct {
	blocks, handles []object
	nodes           []node
	reserved        ipReservations
	ipPools         []ipPool
	settings        []byte // of Calico's IPAM; nil if the files have none
	affinities      []affinity
	endpoints       map[string][]byte // the WorkloadEndpoints of etcd, by <namespace>/<name>
	inEtcd          bool
}

// Offline returns the backend over the documents that are blocks and handles of
// either datastore, and the documents that are not Calico's IPAM. Without a block
// or a handle, the backend is nil.
func Offline(documents []ipam.Document) (found ipam.Backend, rest []ipam.Document) {
	e := excerpt{endpoints: make(map[string][]byte)}
	for _, d := range documents {
		if !e.take(d) {
			rest = append(rest, d)
		}
	}
	// A dump of etcd that has Calico's nodes has all of Calico's resources.
	if e.inEtcd && len(e.nodes) == 0 || !e.inEtcd && ipam.Lacks(documents, "IPReservation", groupV1, groupV3) {
		e.reserved.lack = errors.New("the files do not list all of them")
	}
	if len(e.blocks)+len(e.handles) > 0 {
		found = ipam.Excerpt{Store: Name, Pools: e.pools, Networks: e.networks(), EndpointOf: e.endpointOf, External: e.inEtcd}
	}
	return found, rest
}

// take adds a document to the excerpt. It reports false if the document is not
// Calico's IPAM. It skips Calico's other keys in etcd.
func (e *excerpt) take(d ipam.Document) bool {
	e.inEtcd = e.inEtcd || strings.HasPrefix(d.Key, etcdRoot)
	if plural, name, ok := strings.Cut(strings.TrimPrefix(d.Key, resourcePrefix), "/"); ok && strings.HasPrefix(d.Key, resourcePrefix) {
		e.takeResource(plural, resource{name, d.Data})
		return true
	}
	calico := func(kind string) bool { return d.Is(groupV1, kind) || d.Is(groupV3, kind) }
	switch {
	case strings.HasPrefix(d.Key, blockPrefix) && strings.Contains(d.Key, "/block/"):
		e.blocks = append(e.blocks, object{name: d.Key, raw: d.Data})
	case strings.HasPrefix(d.Key, handlePrefix):
		e.handles = append(e.handles, object{name: d.Key, raw: d.Data})
	case d.Key == settingsKey:
		e.settings = d.Data
	case strings.HasPrefix(d.Key, affinityPrefix):
		if a, ok := affinityOfKey(d.Key); ok {
			e.affinities = append(e.affinities, a)
		}
	case strings.HasPrefix(d.Key, etcdRoot):
	case calico("IPAMBlock"):
		e.blocks = append(e.blocks, readOffline(d))
	case calico("IPAMHandle"):
		e.handles = append(e.handles, readOffline(d))
	case calico("IPReservation"):
		e.takeResource("ipreservations", resource{data: d.Data})
	case calico("IPPool"):
		e.takeResource("ippools", resource{data: d.Data})
	case calico("IPAMConfig"), calico("IPAMConfiguration"):
		e.settings = d.Data
	case calico("BlockAffinity"):
		if a, ok := readAffinity(d.Data); ok {
			e.affinities = append(e.affinities, a)
		}
	case d.Key == "" && d.Kind == "" && looksLikeBlock(d.Data):
		e.blocks = append(e.blocks, object{name: d.File + ": " + d.Place, raw: d.Data})
	default:
		return false
	}
	return true
}

// takeResource adds an object other than a block or handle. A node that cannot be read stands for
// no node of a cluster.
func (e *excerpt) takeResource(plural string, r resource) {
	switch plural {
	case "nodes":
		n, _ := readNode(r)
		e.nodes = append(e.nodes, n)
	case "ipreservations":
		e.reserved.all = append(e.reserved.all, readIPReservation(r))
	case "ippools":
		e.ipPools = append(e.ipPools, readIPPool(r))
	case "workloadendpoints":
		e.endpoints[r.name] = r.data
	}
}

// endpointOf returns what the files have of the endpoint of an allocation's pod.
func (e excerpt) endpointOf(a *ipam.Allocation) ipam.Endpoint {
	if !e.inEtcd {
		return ipam.Endpoint{InPod: true}
	}
	name := endpointName(a)
	stored, known := e.endpoints[a.Owner.Pod.Namespace+"/"+name]
	if !known {
		return ipam.Endpoint{}
	}
	endpoint, err := readEndpoint(name, stored)
	endpoint.Err = err
	return endpoint
}

// networks returns the IPPools of the files as networks; nil if the files have none.
func (e excerpt) networks() func([]ipam.Pool) ([]ipam.Network, error) {
	if len(e.ipPools) == 0 {
		return nil
	}
	shared := e.shares()
	shared.owned = e.affinities
	l := newListing()
	l.takeNodes(e.nodes)
	return func(pools []ipam.Pool) ([]ipam.Network, error) {
		return networksOf(pools, e.ipPools, e.reserved, l.nodes, shared)
	}
}

// shares returns what the files say of the settings of Calico's IPAM.
func (e excerpt) shares() shares {
	if e.settings == nil {
		return shares{unknown: "the files have no settings of Calico's IPAM"}
	}
	return sharesBy(e.settings, nil)
}

// readOffline reads a custom resource. If its metadata cannot be read, the object
// is named by its place in the files; decoding its spec then says what is wrong.
func readOffline(d ipam.Document) object {
	o, err := readObject(blocks, d.Data)
	if err != nil || o.name == "" {
		return object{name: d.File + ": " + d.Place, raw: d.Data, root: "spec"}
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

// pools yields what the documents have. If a handle counts addresses in a block that they lack,
// which may belong to the same sandbox, its addresses are unreadable.
func (e excerpt) pools(yield func(ipam.Pool, error) bool) {
	l := newListing()
	l.partial, l.reserved, l.shares = true, e.reserved, e.shares()
	l.takeNodes(e.nodes)
	l.take(reduced(e.handles, reduceHandle))
	l.take(reduced(e.blocks, reduceBlock))
	l.pools(yield)
}

// reduced returns what reduce makes of each object.
func reduced(objects []object, reduce func(object) any) []any {
	all := make([]any, len(objects))
	for i, o := range objects {
		all[i] = reduce(o)
	}
	return all
}
