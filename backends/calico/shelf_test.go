package calico

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A fakeStore is a datastore in memory, of either shape. Every write puts all of it
// or nothing, and compares the versions of what it replaces; the versions count
// the writes to the whole fakeStore.
//
// It is what its author believes of the real ones, which integration tests: here
// it is for what goes wrong in the midst.
type fakeStore struct {
	shape
	t      testing.TB
	atOnce int
	mapped map[string]string // Calico's nodes to those of Kubernetes
	kept   []ipAllocation

	mu      sync.Mutex
	version int
	things  map[string]thing // by their names
	hook    func(request string) error
	log     []string
}

// A thing is an object on the fakeStore, and the ID that it has in Calico.
type thing struct {
	object
	id string
}

// What a request fails with.
var (
	errLost    = errors.New("the answer was lost") // and the request took effect
	errBroken  = errors.New("the datastore is broken")
	errRefused = errors.New("the datastore refuses")
)

// newShelf returns an empty one: such as in the API server, or in etcd.
func newFakeStore(t testing.TB, s shape) *fakeStore {
	atOnce := map[string]int{"kubernetes": 1, "etcd": maxTxnOps}[s.name]
	return &fakeStore{shape: s, t: t, atOnce: atOnce, version: 100, things: make(map[string]thing)}
}

// backend returns a new backend over the fakeStore.
func (s *fakeStore) backend() *Backend {
	return &Backend{open: func(context.Context) (datastore, error) { return s, nil }}
}

// onRequest sets what happens at the beginning of each request of the backend:
// "ready", "nodes", "allocations", "list blocks", "list handles", "get" or "put" or "delete" and
// "block" or "handle" and its ID, or "create" and its name; more than one in a write are joined by commas.
// The hook may change the fakeStore; an error is what the request fails with.
func (s *fakeStore) onRequest(hook func(request string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook, s.log = hook, nil
}

// requests returns those since the hook was set.
func (s *fakeStore) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// begin is the beginning of a request. That the answer gets lost is for the end.
func (s *fakeStore) begin(ctx context.Context, request string) error {
	s.mu.Lock()
	s.log = append(s.log, request)
	hook := s.hook
	s.mu.Unlock()
	if hook != nil {
		if err := hook(request); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *fakeStore) ready(ctx context.Context) error { return s.begin(ctx, "ready") }

func (s *fakeStore) nodes(ctx context.Context) (map[string]string, error) {
	return s.mapped, s.begin(ctx, "nodes")
}

func (s *fakeStore) allocations(ctx context.Context) ([]ipAllocation, error) {
	return s.kept, s.begin(ctx, "reservations")
}

// Names and what is recorded are the real datastores' business.
func (s *fakeStore) name(k kind, id string) string { return s.real().name(k, id) }

func (s *fakeStore) anew(k kind, name string, raw []byte) (object, error) {
	return s.real().anew(k, name, raw)
}

func (s *fakeStore) real() datastore {
	if s.shape.name == "etcd" {
		return etcd{}
	}
	return kubernetes{group: "crd.projectcalico.org/v1"}
}

func (s *fakeStore) together() int { return s.atOnce }

func (s *fakeStore) transient(err error) error {
	if err == nil || errors.Is(err, errRefused) || errors.Is(err, reaper.ErrAgain) {
		return err
	}
	return fmt.Errorf("%w: %w", reaper.ErrAgain, err)
}

var kindNames = map[kind]string{blocks: "block", handles: "handle"}

func (s *fakeStore) list(ctx context.Context, k kind) ([]object, error) {
	if err := s.begin(ctx, "list "+kindNames[k]+"s"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []object
	for _, thing := range s.things {
		if thing.kind == k {
			all = append(all, thing.object)
		}
	}
	slices.SortFunc(all, func(a, b object) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

func (s *fakeStore) get(ctx context.Context, k kind, id string) (object, error) {
	if err := s.begin(ctx, "get "+kindNames[k]+" "+id); err != nil {
		return object{}, err
	}
	if o, ok := s.look(k, id); ok {
		return o, nil
	}
	return object{}, errGone
}

func (s *fakeStore) write(ctx context.Context, objects ...object) ([]object, error) {
	var words []string
	for _, o := range objects {
		verb := "put "
		switch {
		case o.raw == nil:
			verb = "delete "
		case o.revision == "":
			verb = "create "
		}
		s.mu.Lock()
		id := s.things[fmt.Sprint(o.kind, o.name)].id
		s.mu.Unlock()
		words = append(words, verb+kindNames[o.kind]+" "+cmp.Or(id, o.name))
	}
	failure := s.begin(ctx, strings.Join(words, ", "))
	if failure != nil && !errors.Is(failure, errLost) {
		return nil, failure
	}
	written, err := s.swap(objects...)
	return written, cmp.Or(failure, err)
}

// look returns what is on the fakeStore.
func (s *fakeStore) look(k kind, id string) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	thing, ok := s.things[fmt.Sprint(k, s.stored(k, id, "{}").name)]
	return thing.object, ok
}

// put makes a value what is on the fakeStore, whatever was there.
func (s *fakeStore) put(k kind, id, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shelve(s.stored(k, id, value), id)
}

// create puts a value where nothing is.
func (s *fakeStore) create(k kind, id, value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.stored(k, id, value)
	if _, ok := s.things[fmt.Sprint(k, o.name)]; ok {
		return false
	}
	s.shelve(o, id)
	return true
}

// remove takes something away.
func (s *fakeStore) remove(k kind, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.things, fmt.Sprint(k, s.stored(k, id, "{}").name))
}

// swap writes all the objects or none.
func (s *fakeStore) swap(objects ...object) ([]object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(objects) > s.atOnce {
		s.t.Errorf("%d objects in one write, at most %d will do", len(objects), s.atOnce)
		return nil, errRefused
	}
	for _, o := range objects {
		now, ok := s.things[fmt.Sprint(o.kind, o.name)]
		switch {
		case !ok && o.revision == "":
			continue
		case !ok && s.shape.name == "kubernetes":
			return nil, errGone
		case !ok || now.revision != o.revision || now.uid != o.uid && o.revision != "":
			return nil, errConflict
		}
		if body, err := readObject(o.kind, o.raw); o.raw != nil && s.shape.name == "kubernetes" &&
			(err != nil || body.name != now.name || body.uid != now.uid || body.revision != now.revision) {
			s.t.Errorf("the body is that of another object: %+v, %v", body, err)
			return nil, errRefused
		}
	}
	var written []object
	for _, o := range objects {
		key := fmt.Sprint(o.kind, o.name)
		if o.raw == nil {
			delete(s.things, key)
			written = append(written, o)
			continue
		}
		id := s.things[key].id
		if h, err := readHandle(o); o.revision == "" && err == nil {
			id = h.id
		}
		written = append(written, s.shelve(o, id))
	}
	return written, nil
}

// shelve gives an object a version that none has had.
func (s *fakeStore) shelve(o object, id string) object {
	s.version++
	revision := strconv.Itoa(s.version)
	if s.shape.name == "kubernetes" {
		was, is := `"resourceVersion":"`+o.revision+`"`, `"resourceVersion":"`+revision+`"`
		if o.revision == "" {
			o.uid = "uid-" + o.name + "-" + revision
			was, is = `"metadata":{`, `"metadata":{"uid":"`+o.uid+`",`+is+`,`
		}
		o.raw = []byte(strings.Replace(string(o.raw), was, is, 1))
	}
	o.revision = revision
	s.things[fmt.Sprint(o.kind, o.name)] = thing{o, id}
	return o
}
