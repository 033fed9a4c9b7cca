package calico

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// files is the datastore that files contain a part of, in the forms of both others: custom resources of
// either API group, and keys of etcd. Unlike in these, a missing object may exist.
type files struct {
	blocks, handles []object
	calicoNodes     []node
	reserved        []resource
	ipPools         []resource
	config          []byte // the settings of Calico's IPAM; nil if the files have none
	owned           []affinity
	endpoints       map[string][]byte // the WorkloadEndpoints of etcd, by <namespace>/<name>
	inEtcd          bool
	noNodes         bool // the files are of etcd, and do not tell which nodes Calico has
	noReservations  bool // the files do not tell which IPReservations there are

	ofGroup map[string]map[string]string // Calico's fields of the blocks, by API group and name
	checks  map[string]error             // by API group, empty for etcd, whether its ClusterInformation says that it is in use
}

// newFiles returns the backend over documents, of which it ignores those that are not Calico's IPAM.
func newFiles(documents []ipam.Document, atOnce int) *Backend {
	f := &files{
		endpoints: make(map[string][]byte),
		ofGroup:   map[string]map[string]string{groupV1: {}, groupV3: {}},
		checks:    make(map[string]error),
	}
	ofEtcd, part := false, false
	for _, d := range documents {
		f.take(d)
		ofEtcd = ofEtcd || ofDatastore(d)
		part = part || d.More && d.Kind == "" // of etcd's keys
	}
	// A whole dump of etcd that has Calico's nodes has all of Calico's resources.
	f.noNodes = ofEtcd && (part || len(f.calicoNodes) == 0)
	f.noReservations = f.inEtcd && f.noNodes || !f.inEtcd && ipam.Lacks(documents, "IPReservation", groupV1, groupV3)
	b := newBackend(atOnce, func(context.Context) (datastore, error) { return f, nil })
	b.place.Outside = ofEtcd
	return b
}

// reads reports whether a document is for newFiles that is not of a resource that a run lists.
func reads(d ipam.Document) bool {
	return ofDatastore(d) || d.Is(groupV1, information) || d.Is(groupV3, information)
}

// ofDatastore reports whether a document is no custom resource, but has the form of those in etcd.
func ofDatastore(d ipam.Document) bool {
	return strings.HasPrefix(d.Key, etcdRoot) || isRawBlock(d)
}

// information is the kind of the object that locks the datastore.
const information = "ClusterInformation"

// take adds a document. It skips Calico's other keys in etcd.
func (f *files) take(d ipam.Document) {
	f.inEtcd = f.inEtcd || strings.HasPrefix(d.Key, etcdRoot)
	if plural, name, ok := strings.Cut(strings.TrimPrefix(d.Key, resourcePrefix), "/"); ok && strings.HasPrefix(d.Key, resourcePrefix) {
		f.takeResource(plural, resource{name, d.Data})
		return
	}
	calico := func(kind string) bool { return d.Is(groupV1, kind) || d.Is(groupV3, kind) }
	switch {
	case strings.HasPrefix(d.Key, blockPrefix) && strings.Contains(d.Key, "/block/"):
		f.blocks = append(f.blocks, object{name: d.Key, raw: d.Data})
	case strings.HasPrefix(d.Key, handlePrefix):
		f.handles = append(f.handles, object{name: d.Key, raw: d.Data})
	case d.Key == settingsKey:
		f.config = d.Data
	case strings.HasPrefix(d.Key, affinityPrefix):
		if a, ok := affinityOfKey(d.Key); ok {
			f.owned = append(f.owned, a)
		}
	case strings.HasPrefix(d.Key, etcdRoot):
	case calico("IPAMBlock"):
		f.takeBlock(d)
	case calico("IPAMHandle"):
		f.handles = append(f.handles, readOffline(d))
	case calico(information):
		group, _, _ := strings.Cut(d.APIVersion, "/")
		f.check(group, d.Data)
	case calico("IPReservation"):
		f.takeResource("ipreservations", resource{data: d.Data})
	case calico("IPPool"):
		f.takeResource("ippools", resource{data: d.Data})
	case calico("IPAMConfig"), calico("IPAMConfiguration"):
		f.config = d.Data
	case calico("BlockAffinity"):
		if a, ok := readAffinity(d.Data); ok {
			f.owned = append(f.owned, a)
		}
	case isRawBlock(d):
		f.blocks = append(f.blocks, object{name: d.File + ": " + d.Place, raw: d.Data})
	}
}

// takeResource adds an object other than a block or handle. A node that cannot be read stands for
// no node of a cluster.
func (f *files) takeResource(plural string, r resource) {
	switch plural {
	case "nodes":
		n, _ := readNode(r)
		f.calicoNodes = append(f.calicoNodes, n)
	case "ipreservations":
		f.reserved = append(f.reserved, r)
	case "ippools":
		f.ipPools = append(f.ipPools, r)
	case "clusterinformations":
		f.check("", r.data)
	case "workloadendpoints":
		f.endpoints[r.name] = r.data
	}
}

// check notes what a ClusterInformation says of its API group.
func (f *files) check(group string, data []byte) {
	var info clusterInformation
	err := kube.Decode(data, &info)
	f.checks[group] = cmp.Or(err, info.check())
}

// takeBlock adds a custom resource of a block.
func (f *files) takeBlock(d ipam.Document) {
	o := readOffline(d)
	f.blocks = append(f.blocks, o)
	var fields any
	_ = kube.Decode(o.value(), &fields) // what is broken is said where it is listed
	group, _, _ := strings.Cut(d.APIVersion, "/")
	f.ofGroup[group][o.name] = fmt.Sprint(fields) // which sorts keys
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

// isRawBlock reports whether a document without a kind has the fields of a block, as etcd stores it.
func isRawBlock(d ipam.Document) bool {
	if d.Key != "" || d.Kind != "" {
		return false
	}
	var fields struct {
		CIDR        json.RawMessage `json:"cidr"`
		Allocations json.RawMessage `json:"allocations"`
	}
	return kube.Decode(d.Data, &fields) == nil && fields.CIDR != nil && fields.Allocations != nil
}

// ready implements datastore. Of two API groups with different contents one is old, and files do not say which.
func (f *files) ready(context.Context) (string, error) {
	v1, v3 := f.ofGroup[groupV1], f.ofGroup[groupV3]
	if len(v1) > 0 && len(v3) > 0 && !maps.Equal(v1, v3) {
		return "", fmt.Errorf("the files have blocks of the API groups %s and %s that differ, and one of them is not in use: give a file by ip-reaper dump, which reads the one that is", groupV1, groupV3)
	}
	locked := f.checks[""]
	for group, blocks := range f.ofGroup {
		if err := f.checks[group]; len(blocks) > 0 && err == nil {
			return "", nil
		} else if len(blocks) > 0 {
			locked = err
		}
	}
	return "", locked
}

// list implements datastore. If the files have only blocks or only handles, there are none of the others.
func (f *files) list(_ context.Context, k kind, reduce func(object) any) ([]any, error) {
	objects := f.blocks
	if k == handles {
		objects = f.handles
	}
	if len(f.blocks)+len(f.handles) == 0 {
		return nil, unread(string(k))
	}
	return reduced(objects, reduce), nil
}

// reduced returns what reduce makes of each object.
func reduced(objects []object, reduce func(object) any) []any {
	all := make([]any, len(objects))
	for i, o := range objects {
		all[i] = reduce(o)
	}
	return all
}

// nodes implements datastore. With an error, the files may have some of them.
func (f *files) nodes(context.Context) ([]node, error) {
	if f.noNodes {
		return f.calicoNodes, unread("nodes")
	}
	return f.calicoNodes, nil
}

// resources implements datastore.
func (f *files) resources(_ context.Context, plural string) ([]resource, error) {
	switch {
	case plural == "ippools" && len(f.ipPools) > 0:
		return f.ipPools, nil
	case plural == "ipreservations" && !f.noReservations:
		return f.reserved, nil
	}
	return nil, unread(plural)
}

// settings implements datastore.
func (f *files) settings(context.Context) ([]byte, error) {
	if f.config == nil {
		return nil, unread("settings")
	}
	return f.config, nil
}

// affinities implements datastore.
func (f *files) affinities(context.Context) ([]affinity, error) { return f.owned, nil }

// endpoint implements datastore.
func (f *files) endpoint(_ context.Context, namespace, name string) ([]byte, error) {
	if !f.inEtcd {
		return nil, errInPod
	}
	stored, known := f.endpoints[namespace+"/"+name]
	if !known {
		return nil, errGone
	}
	return stored, nil
}

// unread says that the files do not tell which objects of a resource there are.
func unread(plural string) error { return &ipam.UnreadError{List: plural + " of Calico"} }

// errFiles is for what nobody does with files.
var errFiles = errors.New("nothing is read again from files, or written to them")

func (*files) name(kind, string) string                           { return "" }
func (*files) newObject(kind, string, []byte) (object, error)     { return object{}, errFiles }
func (*files) get(context.Context, kind, string) (object, error)  { return object{}, errFiles }
func (*files) write(context.Context, ...object) ([]object, error) { return nil, errFiles }
func (*files) objectsPerWrite() int                               { return 1 }
func (*files) transient(err error) error                          { return err }
