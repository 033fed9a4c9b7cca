package calico

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// A datastore is where Calico keeps its objects. All reads are quorum reads. A
// datastore is safe for concurrent use.
type datastore interface {
	// ready returns Calico's clusterGUID, and no error if Calico itself would work with the
	// datastore now. The GUID is empty if there is none, or if the datastore is the API server.
	// The error wraps errNotReady if the datastore is locked.
	ready(ctx context.Context) (guid string, err error)

	// list reads every object of a kind and returns what reduce makes of each one, in order,
	// without nils. It holds a page of objects at a time. It calls reduce from one goroutine at a
	// time, and again for an object that it must read again.
	list(ctx context.Context, k kind, reduce func(object) any) ([]any, error)

	// nodes returns Calico's own nodes. There are none if Calico's nodes are those of the
	// API server.
	nodes(ctx context.Context) ([]node, error)

	// resources reads all objects of a resource other than blocks and handles, by its
	// plural name. It returns errUndefined if this version of Calico has no such resource.
	resources(ctx context.Context, plural string) ([]resource, error)

	// settings returns the settings of Calico's IPAM as they are stored; nil if there are none.
	settings(ctx context.Context) ([]byte, error)

	// endpoint reads a WorkloadEndpoint. It returns errGone if there is none, and errInPod if pods
	// stand for them.
	endpoint(ctx context.Context, namespace, name string) ([]byte, error)

	// affinities returns the claims of nodes on blocks.
	affinities(ctx context.Context) ([]affinity, error)

	// name returns the datastore's name for a block, by CIDR, or for a handle, by
	// ID.
	name(k kind, id string) string

	// newObject returns an object that write creates. The raw form was once
	// stored under the name.
	newObject(k kind, name string, raw []byte) (object, error)

	// get reads a block by its CIDR, or a handle by its ID. It returns errGone if
	// the datastore says that it has no such object.
	get(ctx context.Context, k kind, id string) (object, error)

	// write writes all the objects or none. It creates an object without a
	// revision, deletes an object without a raw form, and replaces any other. Each
	// write is conditional on the revision that was read. It returns the objects as
	// they are stored now. It returns errGone if the first object is gone. It returns
	// errConflict if a stored object has another revision, or exists although it was
	// to be created, and an error that wraps ipam.ErrDeleting if finalizers keep an object
	// that was to be deleted.
	write(ctx context.Context, objects ...object) ([]object, error)

	// objectsPerWrite returns how many objects one write can take.
	objectsPerWrite() int

	// transient wraps an error in ipam.ErrAgain if the same request may succeed
	// later.
	transient(err error) error
}

// A resource is an object that has the same form in every datastore.
type resource struct {
	name string // the end of its key in etcd; empty: it is in the metadata
	data []byte
}

// The errors that a datastore returns.
var (
	errGone     = errors.New("the datastore has no such object")
	errConflict = errors.New("the object changed since it was read")

	errUndefined = errors.New("is not defined")
)

// A kind is a kind of object that the backend reads and writes, by the plural name of the
// resource.
type kind string

const (
	blocks  kind = "ipamblocks"
	handles kind = "ipamhandles"
)

// An object is a block or a handle as a datastore stores it, with the version
// that a write is conditional on.
type object struct {
	kind     kind
	name     string    // the name of the resource, or the whole key in etcd
	uid      string    // the UID, in the Kubernetes datastore
	revision string    // the resourceVersion, or etcd's mod revision; empty: to be created
	raw      []byte    // the stored form; nil: to be deleted
	root     string    // the path of Calico's fields in raw; empty: the top
	created  time.Time // zero if the datastore does not record it
	deleting error     // that it is being deleted, and wraps ipam.ErrDeleting; nil in etcd
}

// value returns the part of raw that holds Calico's fields.
func (o object) value() []byte {
	if o.root == "" {
		return o.raw
	}
	return []byte(gjson.GetBytes(o.raw, o.root).Raw)
}

// path returns the path of one of Calico's fields in raw.
func (o object) path(field string) string {
	if o.root == "" {
		return field
	}
	return o.root + "." + field
}

// unambiguous returns an error if an object in the stored form has a key twice.
// Readers differ in which of the two they take, and an edit changes only one.
func (o object) unambiguous() error {
	var whole any
	return decodeStrictly(o.raw, &whole)
}

// set replaces one value in the stored form, or adds it. Every other byte stays.
func (o *object) set(path string, value []byte) (err error) {
	o.raw, err = sjson.SetRawBytes(slices.Clone(o.raw), o.path(path), value)
	return err
}

// unset removes one value from the stored form, if it is there.
func (o *object) unset(path string) (err error) {
	if gjson.GetBytes(o.raw, o.path(path)).Exists() {
		o.raw, err = sjson.DeleteBytes(slices.Clone(o.raw), o.path(path))
	}
	return err
}

// escape escapes a key for use in a path of gjson and sjson.
func escape(key string) string {
	return strings.NewReplacer(".", `\.`, ":", `\:`).Replace(key)
}

// The keys and prefixes of Calico's objects in etcd (libcalico-go's backend/model).
const (
	etcdRoot       = "/calico/"
	blockPrefix    = "/calico/ipam/v2/assignment/"
	handlePrefix   = "/calico/ipam/v2/handle/"
	settingsKey    = "/calico/ipam/v2/config"
	affinityPrefix = "/calico/ipam/v2/host/"
	resourcePrefix = "/calico/resources/v3/projectcalico.org/"
	clusterKey     = resourcePrefix + "clusterinformations/default"
)

// etcdKey returns the key of a block by its CIDR, or of a handle by its ID.
func etcdKey(k kind, id string) string {
	if k == handles {
		return handlePrefix + id
	}
	family := "ipv4"
	if strings.Contains(id, ":") {
		family = "ipv6"
	}
	return blockPrefix + family + "/block/" + strings.ReplaceAll(id, "/", "-")
}

// resourceName returns the name of the resource of a block, by its CIDR, or of a
// handle, by its ID. The names of blocks are unique. Handles whose IDs differ only
// in case share one name.
func resourceName(k kind, id string) string {
	if k == blocks {
		return strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(id)
	}
	return strings.ToLower(id)
}
