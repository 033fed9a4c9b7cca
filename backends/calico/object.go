package calico

import (
	"time"

	"github.com/tidwall/gjson"
)

// A kind of object that is read and written.
type kind int

const (
	blocks kind = iota
	handles
)

// An object is a block or a handle as a datastore has it, and the version of it
// that a write is conditional on.
type object struct {
	kind     kind
	name     string    // of the resource, or the whole key in etcd
	version  string    // the API's, in the Kubernetes datastore
	uid      string    // in the Kubernetes datastore
	revision string    // resourceVersion, or mod revision; empty for what is to be created
	raw      []byte    // as it is stored; nil is to be deleted
	root     string    // where in raw the fields are; empty for the top
	created  time.Time // zero where the datastore does not say
}

// value returns the fields that Calico stores.
func (o object) value() []byte {
	if o.root == "" {
		return o.raw
	}
	return []byte(gjson.GetBytes(o.raw, o.root).Raw)
}

// path returns the path of a field from the top.
func (o object) path(field string) string {
	if o.root == "" {
		return field
	}
	return o.root + "." + field
}
