package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A scriptedStore lists its steps, in their order.
type scriptedStore struct {
	tokenRecorder
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
			if !yield(st.pool, st.err) {
				return
			}
		}
	}
}

func (s scriptedStore) Release(_ context.Context, ws []ipam.Warrant) []error {
	return make([]error, len(ws))
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
			ipam.StatusSkipped, "the store is not installed here: no such resource", nil},
		{"a store that has to be there and is not", []step{absent}, false,
			ipam.StatusFailed, "the store is not installed here: no such resource", nil},
		{"a store that is removed while it is listed", []step{one, absent}, true,
			ipam.StatusFailed, "the store is not installed here: no such resource", nil},
		{"a store that is removed after a pool that cannot be read", []step{torn, absent}, true,
			ipam.StatusFailed, "the store is not installed here: no such resource", nil},
		{"a store that is removed after an object that cannot be decoded", []step{odd, absent}, true,
			ipam.StatusFailed, "the store is not installed here: no such resource", nil},
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

// A meetingStore begins to list when all that it waits for has happened, and says when it
// has begun and when it has listed.
type meetingStore struct {
	tokenRecorder
	name         string
	waits        []chan struct{}
	begun, ended chan struct{}
}

func (s meetingStore) Name() string { return s.name }

func (s meetingStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		close(s.begun)
		for _, other := range s.waits {
			<-other
		}
		yield(ipam.Pool{Name: s.name}, nil)
		close(s.ended)
	}
}

func (meetingStore) Release(context.Context, []ipam.Warrant) []error { return nil }

// A lateProtector protects others, and must be listed after them.
type lateProtector struct {
	meetingStore
	before []meetingStore
}

func (p lateProtector) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	for _, s := range p.before {
		select {
		case <-s.ended:
		default:
			return func(yield func(ipam.Pool, error) bool) {
				yield(ipam.Pool{}, errors.New("listed before "+s.name))
			}
		}
	}
	return p.meetingStore.List(ctx)
}

// Promise 2, 3. Slow stores do not wait for each other, and what protects an allocation is
// listed after it. The listings are in the order of the backends.
func TestStoresAreListedAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := func(name string) meetingStore {
			return meetingStore{name: name, begun: make(chan struct{}), ended: make(chan struct{})}
		}
		a, b, c := store("a"), store("b"), store("c")
		a.waits, b.waits = []chan struct{}{b.begun, c.ended}, []chan struct{}{a.begun} // neither ends without the other
		p := lateProtector{store("p"), []meetingStore{a, b, c}}
		inv := ipam.TakeInventory(t.Context(), []ipam.Backend{p, a, b, c}, func(string) bool { return true }, "p")
		var got []string
		for _, l := range inv.Listings {
			got = append(got, fmt.Sprint(l.Backend, " ", l.Status, " ", len(l.Pools), " ", l.Protects, l.Message))
		}
		equal(t, "listings", got, []string{"p ok 1 true", "a ok 1 false", "b ok 1 false", "c ok 1 false"})
	})
}
