package ipam_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// What the tests of this package share with those of others, by short names.
var (
	webAllocation = reapertest.WebAllocation
	allocations   = reapertest.Allocations
	poolOf        = reapertest.PoolOf
)

type fixedStore = reapertest.Store

// equal fails the test if two values differ.
func equal[T any](t *testing.T, what string, got, want T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// A scriptedStore lists its steps, in their order.
type scriptedStore struct {
	fixedStore
	name  string
	steps []step
}

type step struct {
	pool ipam.Pool
	err  error
}

func (s scriptedStore) Name() string { return s.name }

func (s scriptedStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		for _, st := range s.steps {
			st.pool.Allocations = slices.Clone(st.pool.Allocations) // the inventory marks its own
			if !yield(st.pool, st.err) {
				return
			}
		}
	}
}

// Promise 2, 9, 11.
func TestListing(t *testing.T) {
	one, two := step{pool: poolOf(webAllocation())}, step{pool: poolOf(webAllocation())}
	two.pool.Name = "two"
	torn := step{poolOf(), &ipam.PoolError{Pool: "torn", Err: errors.New("no range")}}
	bent := step{poolOf(), fmt.Errorf("read: %w", &ipam.PoolError{Pool: "bent", Err: errors.New("no spec")})}
	odd := step{poolOf(), &ipam.ObjectError{Object: "attachment odd", Err: errors.New("no JSON")}}
	broken := step{err: errors.New("page 2: 403")}
	absent := step{err: fmt.Errorf("%w: no such resource", ipam.ErrNotInstalled)}
	for _, tt := range []struct {
		name     string
		steps    []step
		optional bool
		status   ipam.Status
		message  string
		pools    []string
	}{
		{"an empty store", nil, false, ipam.StatusOK, "", nil},
		{"two pools", []step{one, two}, false, ipam.StatusOK, "", []string{"pool", "two"}},
		{"a pool that cannot be read hides no other", []step{one, torn, two, bent}, false,
			ipam.StatusPartial, "torn: no range", []string{"pool", "two"}},
		{"an object that cannot be decoded is no failure, and hides no pool", []step{odd, one, two}, false,
			ipam.StatusOK, "", []string{"pool", "two"}},
		{"an incomplete listing is none", []step{one, broken}, false, ipam.StatusFailed, "page 2: 403", nil},
		{"a store that may be missing and is", []step{absent}, true,
			ipam.StatusSkipped, "not installed: no such resource", nil},
		{"a store that has to be there and is not", []step{absent}, false,
			ipam.StatusFailed, "not installed: no such resource", nil},
		{"a store that is removed while it is listed", []step{one, absent}, true,
			ipam.StatusFailed, "not installed: no such resource", nil},
		{"a store that is removed after a pool that cannot be read", []step{torn, absent}, true,
			ipam.StatusFailed, "not installed: no such resource", nil},
		{"a store that is removed after an object that cannot be decoded", []step{odd, absent}, true,
			ipam.StatusFailed, "not installed: no such resource", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inv := ipam.TakeInventory(t.Context(), []ipam.Backend{scriptedStore{name: "store", steps: tt.steps}, fixedStore{poolOf(webAllocation())}},
				func(string) bool { return !tt.optional })
			l := inv.Listings[0]
			var pools []string
			for _, pool := range l.Pools {
				pools = append(pools, pool.Name)
			}
			equal(t, "backend", l.Backend, "store")
			equal(t, "status", l.Status, tt.status)
			equal(t, "message", l.Message, tt.message)
			equal(t, "pools", pools, tt.pools)
			equal(t, "status of the next store", inv.Listings[1].Status, ipam.StatusOK)
		})
	}
}

// A slowStore notes when it is listed, and takes its time.
type slowStore struct {
	fixedStore
	name  string
	asked *time.Time
	takes time.Duration
}

func (s slowStore) Name() string { return s.name }

func (s slowStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		*s.asked = time.Now()
		time.Sleep(s.takes)
		yield(ipam.Pool{Name: s.name}, nil)
	}
}

// A slowProtector notes when it is listed.
type slowProtector struct{ slowStore }

func (p slowProtector) Protections(context.Context) ([]ipam.Protection, error) {
	*p.asked = time.Now()
	return nil, nil
}

// Promise 2, 3. Slow stores do not wait for each other, and what protects an allocation is
// listed after it. The listings are in the order of the backends.
func TestStoresAreListedAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked [4]time.Time
		store := func(i int, name string, takes time.Duration) slowStore {
			return slowStore{nil, name, &asked[i], takes}
		}
		began := time.Now()
		inv := ipam.TakeInventory(t.Context(), []ipam.Backend{
			store(0, "a", time.Second), store(1, "b", 3*time.Second), store(2, "c", 2*time.Second),
		}, func(string) bool { return true }, slowProtector{store(3, "p", 0)})
		var got []string
		for i, l := range inv.Listings {
			got = append(got, fmt.Sprint(l.Backend, " ", l.Status, " ", len(l.Pools), " ", l.Protects, " after ", asked[i].Sub(began)))
		}
		equal(t, "listings", got, []string{"a ok 1 false after 0s", "b ok 1 false after 0s", "c ok 1 false after 0s", "p ok 0 true after 3s"})
	})
}

// An inventory says how many stores were listed, and why the others were not. Only those that were
// listed whole are complete (promise 11).
func TestInventorySaysWhatWasListed(t *testing.T) {
	store := func(name string, steps ...step) ipam.Backend { return scriptedStore{name: name, steps: steps} }
	whole := step{pool: poolOf(allocations(2)...)}
	torn := step{err: &ipam.PoolError{Pool: "torn", Err: errors.New("no range")}}
	broken := step{err: errors.New("page 2: 403")}
	absent := step{err: fmt.Errorf("%w: no such resource", ipam.ErrNotInstalled)}
	for _, tt := range []struct {
		name     string
		stores   []ipam.Backend
		says     string
		listed   []string
		size     int
		complete bool
	}{
		{"one", []ipam.Backend{store("a", whole)}, "1 store", []string{"a"}, 2, true},
		{"all of several", []ipam.Backend{store("a", whole), store("b", whole, whole)}, "2 stores", []string{"a", "b"}, 6, true},
		{"one is not installed", []ipam.Backend{store("a", whole), store("b", absent)}, "1 of 2 stores (b skipped)", []string{"a"}, 2, true},
		{"one is not whole", []ipam.Backend{store("a", whole), store("b", torn, whole)}, "2 stores", []string{"a"}, 4, false},
		{"one failed", []ipam.Backend{store("a", broken), store("b", absent), store("c", whole)},
			"1 of 3 stores (a failed: page 2: 403; b skipped)", []string{"c"}, 2, false},
	} {
		inv := ipam.TakeInventory(t.Context(), tt.stores, func(string) bool { return false })
		equal(t, "stores: "+tt.name, inv.Stores(), tt.says)
		var listed []string
		for _, l := range inv.Listings {
			if l.Whole {
				listed = append(listed, l.Backend)
			}
		}
		equal(t, "listed: "+tt.name, listed, tt.listed)
		equal(t, "size: "+tt.name, inv.Size(), tt.size)
		equal(t, "complete: "+tt.name, inv.Complete(), tt.complete)
	}
}

// objects are a protector.
type objects struct {
	all    []ipam.Protection
	broken error
}

func (objects) Name() string { return "objects" }

func (o objects) Protections(context.Context) ([]ipam.Protection, error) { return o.all, o.broken }

// Promise 2, 11. An object that cannot be decoded is named, and protects what it may name. A protector
// that cannot be read leaves the inventory incomplete.
func TestProtectionsAreListed(t *testing.T) {
	odd := netip.MustParseAddr("::ffff:10.0.0.1")
	list := func(o objects) ipam.Inventory {
		return ipam.TakeInventory(t.Context(), []ipam.Backend{fixedStore{poolOf(webAllocation())}}, func(string) bool { return true }, o)
	}
	inv := list(objects{all: []ipam.Protection{{Name: "odd", Unreadable: "no JSON", IPs: []netip.Addr{odd}}}})
	l := inv.Listings[1]
	equal(t, "listing", fmt.Sprint(l.Backend, " ", l.Status, " ", l.Protects, " ", l.Whole), "objects ok true true")
	equal(t, "undecoded", fmt.Sprint(l.Undecoded), "[odd: no JSON; correct it, or delete it]")
	equal(t, "address", l.Protections[0].IPs[0].String(), "10.0.0.1")
	equal(t, "complete", inv.Complete(), true)
	inv = list(objects{broken: errors.New("page 2: 403")})
	l = inv.Listings[1]
	equal(t, "broken listing", fmt.Sprint(l.Backend, " ", l.Status, " ", l.Protects, " ", l.Whole, " ", l.Message), "objects failed true false page 2: 403")
	equal(t, "complete without it", inv.Complete(), false)
}

// An allocation has the names of where it was listed, and its address is in the form in which pods show it.
func TestAllocationIsOfItsPool(t *testing.T) {
	odd, plain := netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("10.0.0.1")
	pool := poolOf(ipam.Allocation{Key: "1", IP: odd})
	pool.Network = "blue"
	inv := ipam.TakeInventory(t.Context(), []ipam.Backend{fixedStore{pool}}, func(string) bool { return true })
	a := inv.Listings[0].Pools[0].Allocations[0]
	equal(t, "where it was listed", []string{a.Backend, a.Pool, a.Network}, []string{"fixed", "pool", "blue"})
	equal(t, "address", a.IP.String(), plain.String())
	equal(t, "it was ended before now", !inv.Ended().IsZero() && !inv.Ended().After(time.Now()), true)
}

func TestDocumentIsOfAKind(t *testing.T) {
	for _, tt := range []struct {
		name       string
		apiVersion string
		kind       string
		group      string
		want       bool
	}{
		{"a pod", "v1", "Pod", "", true},
		{"a custom resource", "crd.projectcalico.org/v1", "Pod", "crd.projectcalico.org", true},
		{"of a version to come", "crd.projectcalico.org/v9", "Pod", "crd.projectcalico.org", true},
		{"of another kind", "v1", "PodList", "", false},
		{"of another group", "projectcalico.org/v3", "Pod", "crd.projectcalico.org", false},
		{"of a group that is asked for none", "projectcalico.org/v3", "Pod", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := ipam.Document{APIVersion: tt.apiVersion, Kind: tt.kind}
			if got := d.Is(tt.group, "Pod"); got != tt.want {
				t.Errorf("%+v.Is(%q, Pod) = %t, want %t", d, tt.group, got, tt.want)
			}
		})
	}
}
