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
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A fakeStore is a datastore in memory, in either shape. Every write takes effect
// as a whole or not at all, and compares the versions of the objects that it
// replaces. The versions count the writes to the whole store.
//
// It behaves as its author believes the real datastores do, and integration tests
// check those. Its purpose is to fail at a chosen request.
type fakeStore struct {
	shape
	t      testing.TB
	atOnce int
	more   map[string][]resource // by their plural name

	mu      sync.Mutex
	version int
	objects map[string]storedObject // by kind and name
	hook    func(request string) error
	log     []string
}

// A storedObject is an object in the fakeStore, with Calico's ID for it.
type storedObject struct {
	object
	id string
}

// The errors that a test fails a request with.
var (
	errLost    = errors.New("the answer was lost") // the request took effect
	errBroken  = errors.New("the datastore is broken")
	errRefused = errors.New("the datastore refuses")
)

// newFakeStore returns an empty datastore in the shape.
func newFakeStore(t testing.TB, s shape) *fakeStore {
	atOnce := map[string]int{"kubernetes": 1, "etcd": maxTxnOps}[s.name]
	return &fakeStore{shape: s, t: t, atOnce: atOnce, version: 100, objects: make(map[string]storedObject), more: make(map[string][]resource)}
}

// backend returns a new backend over the fakeStore.
func (s *fakeStore) backend() *Backend {
	return newBackend(handlesAtOnce, func(context.Context) (datastore, error) { return s, nil })
}

// onRequest sets a hook that runs at the beginning of each request of the backend.
// The request is "ready", "nodes", "ipreservations", "ippools", "list blocks", "list handles",
// "get", "put" or "delete" with "block" or "handle" and its ID, or "create" with
// the kind and its name. The parts of one write are joined by commas. The hook may
// change the store. If it returns an error, the request fails with it.
func (s *fakeStore) onRequest(hook func(request string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook, s.log = hook, nil
}

// requests returns the requests since the hook was set.
func (s *fakeStore) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// begin records a request and runs the hook. A request whose answer is lost still
// takes effect, so its caller handles errLost.
func (s *fakeStore) begin(ctx context.Context, request string) error {
	if by := ipam.TurnOf(ctx).SendBy; !by.IsZero() && !time.Now().Before(by) {
		return errBroken // as package kube's request limit refuses it
	}
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

func (s *fakeStore) ready(ctx context.Context) (string, error) { return "", s.begin(ctx, "ready") }

func (s *fakeStore) nodes(ctx context.Context) ([]node, error) {
	return nil, s.begin(ctx, "nodes")
}

func (s *fakeStore) resources(ctx context.Context, plural string) ([]resource, error) {
	return s.more[plural], s.begin(ctx, plural)
}

func (s *fakeStore) settings(ctx context.Context) ([]byte, error) {
	if err := s.begin(ctx, "settings"); err != nil || len(s.more["settings"]) == 0 {
		return nil, err
	}
	return s.more["settings"][0].data, nil
}

func (s *fakeStore) endpoint(ctx context.Context, namespace, name string) ([]byte, error) {
	if err := s.begin(ctx, "endpoint "+namespace+"/"+name); err != nil {
		return nil, err
	}
	for _, r := range s.more["workloadendpoints"] {
		if r.name == namespace+"/"+name {
			return r.data, nil
		}
	}
	return nil, errGone
}

func (s *fakeStore) affinities(ctx context.Context) ([]affinity, error) {
	var all []affinity
	for _, r := range s.more["blockaffinities"] {
		if a, ok := readAffinity(r.data); ok {
			all = append(all, a)
		}
	}
	return all, s.begin(ctx, "affinities")
}

// Created objects have the names and form of the real datastores.
func (s *fakeStore) name(k kind, id string) string { return s.real().name(k, id) }

func (s *fakeStore) newObject(k kind, name string, raw []byte) (object, error) {
	return s.real().newObject(k, name, raw)
}

func (s *fakeStore) real() datastore {
	if s.shape.name == "etcd" {
		return etcd{}
	}
	return kubernetes{group: "crd.projectcalico.org/v1"}
}

func (s *fakeStore) objectsPerWrite() int { return s.atOnce }

func (s *fakeStore) transient(err error) error {
	if err == nil || errors.Is(err, errRefused) || errors.Is(err, ipam.ErrAgain) || errors.Is(err, ipam.ErrDeleting) {
		return err
	}
	return fmt.Errorf("%w: %w", ipam.ErrAgain, err)
}

var kindNames = map[kind]string{blocks: "block", handles: "handle"}

func (s *fakeStore) list(ctx context.Context, k kind, reduce func(object) any) ([]any, error) {
	if err := s.begin(ctx, "list "+kindNames[k]+"s"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []object
	for _, stored := range s.objects {
		if stored.kind == k {
			all = append(all, stored.object)
		}
	}
	slices.SortFunc(all, func(a, b object) int { return cmp.Compare(a.name, b.name) })
	return slices.DeleteFunc(reduced(all, reduce), func(one any) bool { return one == nil }), nil
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
		id := s.objects[fmt.Sprint(o.kind, o.name)].id
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

// look returns an object as it is stored.
func (s *fakeStore) look(k kind, id string) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, ok := s.objects[fmt.Sprint(k, s.stored(k, id, "{}").name)]
	return stored.object, ok
}

// put stores a value, whether or not the object exists.
func (s *fakeStore) put(k kind, id, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(s.stored(k, id, value), id)
}

// create stores a value unless the object exists.
func (s *fakeStore) create(k kind, id, value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.stored(k, id, value)
	if _, ok := s.objects[fmt.Sprint(k, o.name)]; ok {
		return false
	}
	s.keep(o, id)
	return true
}

// remove deletes an object.
func (s *fakeStore) remove(k kind, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, fmt.Sprint(k, s.stored(k, id, "{}").name))
}

// swap writes all the objects or none, by compare-and-swap.
func (s *fakeStore) swap(objects ...object) ([]object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(objects) > s.atOnce {
		s.t.Errorf("%d objects in one write, want at most %d", len(objects), s.atOnce)
		return nil, errRefused
	}
	for i, o := range objects {
		now, ok := s.objects[fmt.Sprint(o.kind, o.name)]
		switch {
		case !ok && o.revision == "":
			continue
		case !ok && (i == 0 || s.shape.name == "kubernetes"):
			return nil, errGone
		case !ok || now.revision != o.revision || now.uid != o.uid && o.revision != "":
			return nil, errConflict
		}
		if body, err := readObject(o.kind, o.raw); o.raw != nil && s.shape.name == "kubernetes" &&
			(err != nil || body.name != now.name || body.uid != now.uid || body.revision != now.revision) {
			s.t.Errorf("the body is of another object: %+v, %v", body, err)
			return nil, errRefused
		}
	}
	var written []object
	for _, o := range objects {
		key := fmt.Sprint(o.kind, o.name)
		if o.raw == nil {
			delete(s.objects, key)
			written = append(written, o)
			continue
		}
		id := s.objects[key].id
		if h, err := readHandle(o); o.revision == "" && err == nil {
			id = h.id
		}
		written = append(written, s.keep(o, id))
	}
	return written, nil
}

// keep stores an object with a version that no object has had.
func (s *fakeStore) keep(o object, id string) object {
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
	s.objects[fmt.Sprint(o.kind, o.name)] = storedObject{o, id}
	return o
}
