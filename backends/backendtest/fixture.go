package backendtest

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A fixture is a store and a cluster for one check.
type fixture struct {
	*testing.T
	store Store
	pods  *Pods
	made  atomic.Int64 // the number of owners so far

	adoptable bool // judge every allocation as if a later sandbox might adopt it
}

// An entry is an address that the plugin allocated.
type entry struct {
	ipam.Allocation
	pool      string
	requester ipam.Owner // for whom the plugin allocated it
}

// owner returns a new pod with that name and a new sandbox.
func (s *fixture) owner(name string) ipam.Owner {
	n := s.made.Add(1)
	return ipam.Owner{
		Pod:       ipam.PodRef{Namespace: "default", Name: name},
		UID:       fmt.Sprintf("00000000-0000-4000-8000-%012x", n),
		Sandbox:   fmt.Sprintf("%064x", n),
		Interface: "net1",
		Node:      "node-1",
	}
}

// create creates the pod in the cluster, and its sandbox.
func (s *fixture) create(owner ipam.Owner) {
	s.pods.Add(census.Pod{Ref: owner.Pod, UID: owner.UID})
	s.pods.AddSandboxes(census.Sandbox{ID: owner.Sandbox, Pod: owner.Pod, UID: owner.UID, Ready: true})
}

// allocate lets the plugin allocate an address.
func (s *fixture) allocate(pool string, owner ipam.Owner) entry {
	s.Helper()
	r, err := s.store.Reserve(pool, owner)
	if err != nil {
		s.Fatalf("allocate for %s: %v", owner.Pod, err)
	}
	return entry{r, pool, owner}
}

// free lets the plugin free an entry.
func (s *fixture) free(e entry) {
	s.Helper()
	if err := s.store.Free(e.pool, e.requester); err != nil {
		s.Fatalf("free %s: %v", Place(e.Allocation), err)
	}
}

// leak allocates an address for each pod. The pods do not exist.
func (s *fixture) leak(pool string, pods ...string) []entry {
	s.Helper()
	var leaked []entry
	for _, name := range pods {
		leaked = append(leaked, s.allocate(pool, s.owner(name)))
	}
	return leaked
}

// live creates pods, and allocates an address for each.
func (s *fixture) live(pool string, pods ...string) []entry {
	s.Helper()
	var live []entry
	for _, name := range pods {
		owner := s.owner(name)
		s.create(owner)
		live = append(live, s.allocate(pool, owner))
	}
	return live
}

// giveAway frees an entry, and lets the plugin allocate until another pod has its
// place.
func (s *fixture) giveAway(e entry) entry {
	s.Helper()
	s.free(e)
	return s.reallocate(e)
}

// reallocate lets the plugin allocate until another pod has the place of a freed
// entry.
func (s *fixture) reallocate(e entry) entry {
	s.Helper()
	for n := range 300 {
		if again := s.live(e.pool, fmt.Sprintf("new-owner-%d", n))[0]; Place(again.Allocation) == Place(e.Allocation) {
			return again
		}
	}
	s.Fatalf("%s is free, and the plugin does not allocate it again", Place(e.Allocation))
	return entry{}
}

// list returns the backend's listing, by Place.
func (s *fixture) list() map[string]ipam.Allocation {
	s.Helper()
	inv := ipam.TakeInventory(s.Context(), []ipam.Backend{s.store.Backend()}, func(string) bool { return true })
	l := inv.Listings[0]
	if l.Status != ipam.StatusOK {
		s.Fatalf("the listing is %v: %s", l.Status, l.Message)
	}
	listed, pools := make(map[string]ipam.Allocation), make(map[string]bool)
	for _, u := range l.Pools {
		if pools[u.Name] {
			s.Errorf("pool %s is listed twice", u.Name)
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
func (s *fixture) snapshot() map[string]string {
	s.Helper()
	snapshot, err := s.store.Snapshot()
	if err != nil {
		s.Fatal(err)
	}
	return snapshot
}

// wantContent fails the check unless the store's content is the same as before,
// without the given entries.
func (s *fixture) wantContent(before map[string]string, without ...entry) {
	s.Helper()
	want := maps.Clone(before)
	for _, e := range without {
		if _, ok := want[Place(e.Allocation)]; !ok {
			s.Errorf("the harness's snapshot lacks %s", Place(e.Allocation))
		}
		delete(want, Place(e.Allocation))
	}
	if diff := cmp.Diff(want, s.snapshot()); diff != "" {
		s.Errorf("the store's content (-want +got):\n%s", diff)
	}
}
