package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
)

// A Document is an object of a store or of a cluster that was read from a file.
type Document struct {
	File  string // the name of the file, for people
	Place string // where in the file it is, for people

	APIVersion string
	Kind       string // empty if the file does not say
	Key        string // in etcd; empty for an object of the API
	Data       []byte // as it is stored: JSON, or a value of etcd; empty for a list

	// List is set for a list. Its items are documents of their own. More says that
	// the list is not whole: the API server or etcd has another page.
	List bool
	More bool
}

// Is reports whether the object is of the kind of an API group, in any version. The
// group of pods is empty.
func (d Document) Is(group, kind string) bool {
	have, version, ok := strings.Cut(d.APIVersion, "/")
	if !ok {
		have, version = "", d.APIVersion
	}
	return d.Kind == kind && version != "" && have == group
}

// An Excerpt is a Backend that lists the pools of files. It releases nothing.
type Excerpt struct {
	Store string // the name of the backend
	Pools iter.Seq2[Pool, error]

	// Networks returns the networks of the pools, as Survey does. It is nil if the files
	// do not say which addresses pods can get.
	Networks func(pools []Pool) ([]Network, error)

	// EndpointOf returns what the files have beside the allocations for the pod of one, as
	// Endpoints does. It is nil if the store has no endpoints.
	EndpointOf func(*Allocation) Endpoint

	// Lacks are the lists that the files do not have, and that may keep allocations.
	Lacks []Lack

	// External is set if the files are of a store outside the API server.
	External bool
}

// Locate implements Locator. Files are not compared with earlier ones.
func (e Excerpt) Locate() Store { return Store{Outside: e.External} }

// Survey implements Surveyor.
func (e Excerpt) Survey(_ context.Context, pools []Pool) ([]Network, error) {
	if e.Networks == nil {
		return nil, nil
	}
	return e.Networks(pools)
}

// Endpoints implements Endpointer.
func (e Excerpt) Endpoints(_ context.Context, as []*Allocation) []Endpoint {
	endpoints := make([]Endpoint, len(as))
	for i, a := range as {
		if e.EndpointOf != nil {
			endpoints[i] = e.EndpointOf(a)
		}
	}
	return endpoints
}

// Name implements Backend.
func (e Excerpt) Name() string { return e.Store }

// List implements Backend. A pool that the files have twice counts once. If the two
// differ, the first one counts, and the second is a *PoolError: the files do not say
// which is newer.
func (e Excerpt) List(context.Context) iter.Seq2[Pool, error] {
	return func(yield func(Pool, error) bool) {
		first := make(map[string]Pool)
		for pool, err := range e.Pools {
			if err == nil {
				have, again := first[pool.Name]
				switch {
				case !again:
					have = pool
					have.Allocations = slices.Clone(pool.Allocations) // the caller may change its own
					first[pool.Name] = have
					e.protect(pool.Allocations)
				case reflect.DeepEqual(have, pool):
					continue
				default:
					pool, err = Pool{}, &PoolError{Pool: pool.Name, Err: errTwice}
				}
			}
			if !yield(pool, err) {
				return
			}
		}
	}
}

// protect protects the allocations that something in a missing list may keep.
func (e Excerpt) protect(allocations []Allocation) {
	for i := range allocations {
		a := &allocations[i]
		for _, lack := range e.Lacks {
			if a.Protected == "" && a.HoldsAddress() && (lack.Keeps == nil || lack.Keeps(a)) {
				a.Protected = lack.Says()
			}
		}
	}
}

var errTwice = errors.New("the files have this pool twice, with different contents; the first one counts")

// errFile says that a file is not a store.
var errFile = fmt.Errorf("%w: nothing can be released from a file", ErrKept)

// Record implements Backend.
func (Excerpt) Record(context.Context, []Allocation) ([]json.RawMessage, error) { return nil, errFile }

// Release implements Backend.
func (Excerpt) Release(_ context.Context, ws []Warrant) []error {
	return slices.Repeat([]error{errFile}, len(ws))
}

// Restore implements Backend.
func (Excerpt) Restore(_ context.Context, _ string, rs []Record, _ Permit) []error {
	return slices.Repeat([]error{errFile}, len(rs))
}
