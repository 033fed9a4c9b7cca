package calico

import (
	"context"
	"errors"
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
