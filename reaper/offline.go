package reaper

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
)

// A Document is an object of a store or of a cluster, as a file has it.
type Document struct {
	File  string // as people call it
	Place string // where in the file it is, in words

	APIVersion string
	Kind       string // empty where nothing says it
	Key        string // in etcd; empty where it is not from there
	Data       []byte // as it is stored, which is JSON unless it is of etcd; empty for a list

	// List is set for a list, which comes beside its items. More says that it
	// is not all of it: the API server or etcd has another page.
	List bool
	More bool
}

// Is reports whether the object is of a kind of an API group, in whatever
// version. The group of pods is empty.
func (d Document) Is(group, kind string) bool {
	have, version, ok := strings.Cut(d.APIVersion, "/")
	if !ok {
		have, version = "", d.APIVersion
	}
	return d.Kind == kind && version != "" && have == group
}

// An Excerpt is a Backend over what files have of a store. It releases nothing:
// a file is not the store.
type Excerpt struct {
	Store string // the name of the backend
	Pools iter.Seq2[Pool, error]
}

// Name implements Backend.
func (e Excerpt) Name() string { return e.Store }

// List implements Backend. A pool that the files have twice counts once. Where
// they have it in two forms, nothing tells which is newer: the first counts, and
// the other one cannot be read.
func (e Excerpt) List(context.Context) iter.Seq2[Pool, error] {
	return func(yield func(Pool, error) bool) {
		first := make(map[string]Pool)
		for u, err := range e.Pools {
			if err == nil {
				u.Object = Object{} // a file may be of another version of the API
				have, again := first[u.Name]
				switch {
				case !again:
					have = u
					have.Allocations = slices.Clone(u.Allocations) // whoever lists may change them
					first[u.Name] = have
				case reflect.DeepEqual(have, u):
					continue
				default:
					u, err = Pool{}, &PoolError{u.Name, errTwice}
				}
			}
			if !yield(u, err) {
				return
			}
		}
	}
}

var errTwice = errors.New("the files have it twice, and not the same; the first counts")

// Release implements Backend.
func (e Excerpt) Release(_ context.Context, _ string, ws []Warrant) []error {
	errs := make([]error, len(ws))
	for i := range errs {
		errs[i] = fmt.Errorf("%w: a file is not the store", ErrKept)
	}
	return errs
}
