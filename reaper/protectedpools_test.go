package reaper_test

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// leakyPool returns a pool of two addresses, one of which has leaked. Its parts are
// protected by these objects; empty: by none.
func leakyPool(name, leaked, whole string) ipam.Pool {
	a := webAllocation()
	a.Protected = leaked
	return ipam.Pool{Name: name, Network: "-", Range: netip.MustParsePrefix("10.0.0.0/30"), Capacity: big.NewInt(2),
		Protected: whole, Allocations: []ipam.Allocation{a}}
}

// Promise 7. A run that can release nothing from a pool says so, and names the object.
func TestPoolOfWhichEverythingIsProtectedIsAWarning(t *testing.T) {
	const by = "excluded by the network attachment shop/lan"
	const says = "nothing is released from store one, because every address is protected: " + by
	var six []ipam.Pool
	for n := range 7 {
		six = append(six, leakyPool(fmt.Sprint("p", n), by, by))
	}
	noRange := leakyPool("one", by, by)
	noRange.Range = netip.Prefix{}
	live := leakyPool("one", by, by)
	live.Allocations[0].Owner.Pod = app("live-1").Pod
	for _, tt := range []struct {
		name  string
		pools []ipam.Pool
		want  []string
	}{
		{"a pool that is protected as a whole", []ipam.Pool{leakyPool("one", by, by)}, []string{says}},
		{"many", six, []string{"nothing is released from store p0, store p1, store p2, store p3, store p4 and 2 more, because every address is protected: " + by}},

		// All other leaks of these pools are released.
		{"a pool of which only the leaked address is protected", []ipam.Pool{leakyPool("one", by, "")}, nil},
		{"a pool without a leak", []ipam.Pool{live}, nil},
		{"an object that gives no addresses", []ipam.Pool{noRange}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var steps []step
			for _, pool := range tt.pools {
				steps = append(steps, step{pool: pool})
			}
			h := newHarness(scriptedStore{name: "store", steps: steps})
			h.pods.Add(census.Pod{Ref: app("live-1").Pod})
			report := h.run(t)
			equal(t, "warnings", report.Warnings, tt.want)
			for i, p := range report.Pools {
				want := ""
				if tt.want != nil {
					want = tt.pools[i].Protected
				}
				equal(t, "the object in the report of "+p.Name, p.ProtectedBy, want)
			}
		})
	}
}

// An object that may name every address protects each pool as a whole.
func TestReservedIPsMayProtectAPoolAsAWhole(t *testing.T) {
	h, _, _ := protectedHarness(t, undecoded(reservedIP{Key: "ns/a", All: true}))
	rep := h.run(t)
	want := fakeStorePool + " ns/a may name it: " + malformed
	equal(t, "pool", rep.Pools[0].ProtectedBy, want)
	equal(t, "warned", slices.Contains(rep.Warnings, "nothing is released from memory a, because every address is protected: "+want), true)
}
