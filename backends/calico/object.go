package calico

import (
	"time"

	"github.com/tidwall/gjson"
)

// A kind is a kind of object that the backend reads and writes.
type kind int

const (
	blocks kind = iota
	handles
)

// An object is a block or a handle as a datastore stores it, with the version on
// which a write is conditional.
type object struct {
	kind     kind
	name     string    // the name of the resource, or the whole key in etcd
	version  string    // the apiVersion, in the Kubernetes datastore
	uid      string    // the UID, in the Kubernetes datastore
	revision string    // the resourceVersion, or etcd's mod revision; empty: to be created
	raw      []byte    // the stored form; nil: to be deleted
	root     string    // the path of Calico's fields in raw; empty: the top
	created  time.Time // zero if the datastore does not say it
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
