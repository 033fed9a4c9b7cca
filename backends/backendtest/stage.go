package backendtest

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A stage is a store and a cluster beside it, for one check.
type stage struct {
	*testing.T
	store Store
	pods  *Pods
	made  atomic.Int64
}

// An entry is what the plugin got for a pod.
type entry struct {
	reaper.Allocation
	pool string
	asks reaper.Owner // whom it was reserved for
}

// owner returns a new pod of that name, with a new sandbox.
func (s *stage) owner(name string) reaper.Owner {
	n := s.made.Add(1)
	return reaper.Owner{
		Pod:       reaper.PodRef{Namespace: "default", Name: name},
		UID:       fmt.Sprintf("00000000-0000-4000-8000-%012x", n),
		Sandbox:   fmt.Sprintf("%064x", n),
		Interface: "net1",
		Node:      "node-1",
	}
}

// create makes the pod exist.
func (s *stage) create(owner reaper.Owner) {
	s.pods.Add(reaper.Pod{Ref: owner.Pod, UID: owner.UID})
}

// reserve lets the plugin reserve an address.
func (s *stage) reserve(pool string, owner reaper.Owner) entry {
	s.Helper()
	r, err := s.store.Reserve(pool, owner)
	if err != nil {
		s.Fatalf("reserve for %s: %v", owner.Pod, err)
	}
	return entry{r, pool, owner}
}

// free lets the plugin free what it reserved.
func (s *stage) free(e entry) {
	s.Helper()
	if err := s.store.Free(e.pool, e.asks); err != nil {
		s.Fatalf("free %s: %v", Place(e.Allocation), err)
	}
}

// leak reserves an address for each of some pods that do not exist.
func (s *stage) leak(pool string, pods ...string) []entry {
	s.Helper()
	var leaked []entry
	for _, name := range pods {
		leaked = append(leaked, s.reserve(pool, s.owner(name)))
	}
	return leaked
}

// live reserves an address for each of some pods that exist.
func (s *stage) live(pool string, pods ...string) []entry {
	s.Helper()
	var live []entry
	for _, name := range pods {
		owner := s.owner(name)
		s.create(owner)
		live = append(live, s.reserve(pool, owner))
	}
	return live
}

// giveAway frees an entry and lets others reserve until one has its place.
func (s *stage) giveAway(e entry) entry {
	s.Helper()
	s.free(e)
	return s.inherit(e)
}

// inherit lets others reserve until one has the place of an entry that is gone.
func (s *stage) inherit(e entry) entry {
	s.Helper()
	for n := range 300 {
		if again := s.live(e.pool, fmt.Sprintf("heir-%d", n))[0]; Place(again.Allocation) == Place(e.Allocation) {
			return again
		}
	}
	s.Fatalf("%s is free, but the plugin does not give it again", Place(e.Allocation))
	return entry{}
}

// list returns what the backend lists, by Place.
func (s *stage) list() map[string]reaper.Allocation {
	s.Helper()
	inv := reaper.TakeInventory(s.Context(), []reaper.Backend{s.store.Backend()}, func(string) bool { return true })
	l := inv.Listings[0]
	if l.Status != reaper.StatusOK {
		s.Fatalf("the listing is %v: %s", l.Status, l.Message)
	}
	listed, pools := make(map[string]reaper.Allocation), make(map[string]bool)
	for _, u := range l.Pools {
		if pools[u.Name] {
			s.Errorf("unit %s is listed twice", u.Name)
		}
		pools[u.Name] = true
		for _, r := range u.Allocations {
			if _, twice := listed[Place(r)]; twice {
				s.Errorf("%s is listed twice", Place(r))
			}
			listed[Place(r)] = r
		}
	}
	return listed
}

// snapshot returns the content of the store.
func (s *stage) snapshot() map[string]string {
	s.Helper()
	snapshot, err := s.store.Snapshot()
	if err != nil {
		s.Fatal(err)
	}
	return snapshot
}

// holds fails the check unless the store holds what it held before, but for the
// entries that it should be without.
func (s *stage) holds(before map[string]string, without ...entry) {
	s.Helper()
	want := maps.Clone(before)
	for _, e := range without {
		if _, ok := want[Place(e.Allocation)]; !ok {
			s.Errorf("the harness's snapshot does not have %s", Place(e.Allocation))
		}
		delete(want, Place(e.Allocation))
	}
	if diff := cmp.Diff(want, s.snapshot()); diff != "" {
		s.Errorf("the store's content (-want +got):\n%s", diff)
	}
}
