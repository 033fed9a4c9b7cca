package whereabouts_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A pool with thousands of entries of gone pods, and a few of live ones, is written only a few
// times.
func TestLargePoolIsReleasedInFewWrites(t *testing.T) {
	const every = 250 // one in this many is alive
	entries := 5100
	if testing.Short() {
		entries = 1100
	}
	live := (entries + every - 1) / every
	stale := entries - live
	f := newFixture(t)
	allocations := make([]string, entries)
	for i := range allocations {
		pod := fmt.Sprintf("gone-%d", i)
		if i%every == 0 {
			pod = fmt.Sprintf("live-%d", i)
			f.runs(pod, fmt.Sprintf("10.0.%d.%d", (i+1)>>8, (i+1)&0xff))
		}
		allocations[i] = fmt.Sprintf(`"%d":{"id":"sandbox-%d","podref":"shop/%s","ifname":"net1"}`, i+1, i, pod)
	}
	f.writePool("10.0.0.0-16", "10.0.0.0/16", "{"+strings.Join(allocations, ",")+"}")
	before := f.store()

	got := f.reap(noLimit)
	if n := count(got.lines, "released"); n != stale || got.exit != reap.ExitDone {
		t.Errorf("%d released, want %d; exit code %d\n%s", n, stale, got.exit, got.stderr)
	}
	left := before.without(got.lines)
	if n := len(left.content) - 1; n != live {
		t.Errorf("%d entries left, want %d", n, live)
	}
	f.wantStore(left)

	writes := (stale + ipam.MaxBatch - 1) / ipam.MaxBatch
	if got := reap.StoreWrites(f.toReaper.Mutations())["patch ippools"]; got > 2*writes { // some are late on a busy machine
		t.Errorf("%d writes, want some %d", got, writes)
	}
	for _, r := range f.toReaper.Requests() {
		var operations []json.RawMessage
		if r.String() == "patch ippools" && (json.Unmarshal(r.Body, &operations) != nil || len(operations) > 10_000) {
			t.Errorf("a patch of %d operations; an API server takes 10,000", len(operations))
		}
	}
}
