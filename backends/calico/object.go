package calico

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	kjson "sigs.k8s.io/json"
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
	twice, err := kjson.UnmarshalStrict(o.raw, &whole)
	return errors.Join(append(twice, err)...)
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
