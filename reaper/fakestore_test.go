package reaper_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// reservedIPsName is the name of a fakeStore as a backend.
const reservedIPsName = "reservedIPs"

// A reservedIP is an object of a fakeStore.
type reservedIP struct {
	Pool, Key     string
	IPs           []netip.Addr
	Pod           ipam.PodRef
	TTL           *time.Duration
	Deleted       time.Time
	DeleteExpired bool
	Undecoded     string // why it cannot be decoded; empty if it can
	Namespaces    []string
	All           bool
	Token         string
	Stored        json.RawMessage
}

// allocation returns the object as a backend lists it.
func (o reservedIP) allocation() ipam.Allocation {
	a := ipam.Allocation{
		Key: o.Key, Token: o.Token, Owner: ipam.Owner{Pod: o.Pod},
		Protects: &ipam.Protection{
			IPs: o.IPs, TTL: o.TTL, Deleted: o.Deleted, Deletable: o.DeleteExpired, Namespaces: o.Namespaces, All: o.All,
		},
		Unreadable: o.Undecoded,
	}
	if len(o.IPs) == 1 {
		a.IP = o.IPs[0]
	}
	return a
}

// A fakeStore is a backend in memory, of one pool, whose allocations protect those of others.
// Every write compares and swaps.
type fakeStore struct {
	mu      sync.Mutex
	objects []reservedIP
	version int
	asked   []string
	hook    func(request string) error // of "list", "delete key" and "restore key"
}

// fakeStorePool is the name of the pool of a fakeStore: the resource of its objects.
const fakeStorePool = "reservedips.v1.example.com"

// add adds objects, or new versions of them.
func (s *fakeStore) add(objects ...reservedIP) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		s.version++
		o.Pool, o.Token, o.Stored = fakeStorePool, fmt.Sprint("v", s.version), nil
		o.Stored, _ = json.Marshal(o) // it has nothing that does not marshal
		s.objects = slices.DeleteFunc(s.objects, func(have reservedIP) bool { return have.Key == o.Key })
		s.objects = append(s.objects, o)
	}
}

// keys returns the names of the objects.
func (s *fakeStore) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for _, o := range s.objects {
		keys = append(keys, o.Key)
	}
	slices.Sort(keys)
	return keys
}

// begin notes a request, and calls the hook.
func (s *fakeStore) begin(ctx context.Context, request string) error {
	s.mu.Lock()
	s.asked = append(s.asked, request)
	hook := s.hook
	s.mu.Unlock()
	if hook != nil {
		if err := hook(request); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *fakeStore) Name() string { return reservedIPsName }

// all lists every object in one request.
func (s *fakeStore) all(ctx context.Context) ([]reservedIP, error) {
	if err := s.begin(ctx, "list"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.objects), nil
}

func (s *fakeStore) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		all, err := s.all(ctx)
		if err != nil || len(all) == 0 {
			if err != nil {
				yield(ipam.Pool{}, err)
			}
			return
		}
		pool := ipam.Pool{Name: fakeStorePool}
		for _, o := range all {
			pool.Allocations = append(pool.Allocations, o.allocation())
			err := &ipam.ObjectError{Object: fakeStorePool + " " + o.Key, Err: errors.New(o.Undecoded)}
			if o.Undecoded != "" && !yield(ipam.Pool{}, err) {
				return
			}
		}
		yield(pool, nil)
	}
}

func (s *fakeStore) Record(ctx context.Context, as []ipam.Allocation) ([]json.RawMessage, error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	records := make([]json.RawMessage, len(as))
	for i, a := range as {
		for _, o := range all {
			if o.Key == a.Key && o.Token == a.Token {
				records[i] = o.Stored
			}
		}
	}
	return records, nil
}

func (s *fakeStore) Release(ctx context.Context, ws []ipam.Warrant) []error {
	errs := make([]error, len(ws))
	for i, w := range ws {
		a, err := w.Allocation()
		if err == nil {
			err = s.delete(ctx, a.Pool, a)
		}
		errs[i] = err
	}
	return errs
}

func (s *fakeStore) delete(ctx context.Context, pool string, a ipam.Allocation) error {
	if err := s.begin(ctx, "delete "+a.Key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.objects, func(have reservedIP) bool { return have.Pool == pool && have.Key == a.Key })
	switch {
	case i < 0:
		return nil
	case s.objects[i].Token != a.Token:
		return ipam.ErrChanged
	}
	s.objects = slices.Delete(s.objects, i, i+1)
	return nil
}

func (s *fakeStore) Compare(_ context.Context, _ string, rs []ipam.Record) []error {
	errs := make([]error, len(rs))
	for i, r := range rs {
		if slices.Contains(s.keys(), r.Key) {
			errs[i] = ipam.ErrPresent
		}
	}
	return errs
}

func (s *fakeStore) Restore(ctx context.Context, pool string, rs []ipam.Record) []error {
	errs := make([]error, len(rs))
	for i, r := range rs {
		if errs[i] = s.begin(ctx, "restore "+r.Key); errs[i] != nil {
			continue
		}
		var o reservedIP
		switch err := json.Unmarshal(r.Stored, &o); {
		case err != nil || pool != fakeStorePool:
			errs[i] = errors.Join(err, errors.New("it is of no such resource"))
		case slices.Contains(s.keys(), r.Key):
			errs[i] = ipam.ErrPresent
		default:
			s.add(o)
		}
	}
	return errs
}

// hours returns a TTL of n hours.
func hours(n int) *time.Duration {
	ttl := time.Duration(n) * time.Hour
	return &ttl
}

// protecting returns an object ns/key that protects these addresses.
func protecting(key string, ttl *time.Duration, ips ...netip.Addr) reservedIP {
	return reservedIP{Key: "ns/" + key, IPs: ips, TTL: ttl}
}

// protectingPod returns an object ns/key that protects all addresses of the pod.
func protectingPod(key string, ttl *time.Duration, pod string) reservedIP {
	return reservedIP{Key: "ns/" + key, Pod: app(pod).Pod, TTL: ttl}
}

// deletable returns the object as the policy lets it be deleted, after the allocations
// that it protects.
func deletable(o reservedIP) reservedIP {
	o.DeleteExpired = true
	return o
}

// protectedHarness returns a harness with these objects in a fakeStore. The pod live-1
// exists and has 10.0.0.1. The pod gone-1 does not exist and had 10.0.0.2.
func protectedHarness(t *testing.T, objects ...reservedIP) (*harness, *backendtest.Memory, *fakeStore) {
	t.Helper()
	m, s := backendtest.NewMemory("memory"), &fakeStore{}
	s.add(objects...)
	h := newHarness(m.Backend(), s)
	h.addPods(t, m, "live-1", "gone-1")
	return h, m, s
}

// entryOf returns the report's entry with that key.
func entryOf(t *testing.T, r report.Report, key string) report.Entry {
	t.Helper()
	i := slices.IndexFunc(r.Entries, func(e report.Entry) bool { return e.Key == key })
	if i < 0 {
		t.Fatalf("the report has no entry %s: %+v", key, r.Entries)
	}
	return r.Entries[i]
}

// reported returns the decision of the report's entry with that key.
func reported(t *testing.T, r report.Report, key string) decision {
	t.Helper()
	e := entryOf(t, r, key)
	return decision{e.Verdict, e.Reason, e.Note}
}
