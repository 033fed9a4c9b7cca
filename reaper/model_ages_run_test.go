package reaper_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 1, 4. A pod comes back while the address that it had is released, and the ADD of the
// plugin proceeds between any two requests of the run. Each row says what gets lost under its
// conditions in any script, but would not without the run. With -short, only every third row.
func TestEveryAgeOfALook(t *testing.T) {
	const old, ever = 20 * time.Second, time.Hour
	program := conditions{
		entry: ipam.Freshness, tombstone: ipam.Freshness, again: ipam.Freshness,
		starts: 2*time.Second + time.Millisecond,
	}
	for n, tt := range []struct {
		name string
		but  func(*conditions) // what differs from the program
		want []string
	}{
		{"the program", func(*conditions) {}, nil},
		{"its machine sleeps", func(c *conditions) { c.asleep = true }, nil},
		{"beside a late DEL", func(c *conditions) { c.del = true }, nil},

		{"entries, 20 s after the look", func(c *conditions) { c.entry = old }, []string{neverReserved}},
		{"entries that no ADD adopts, at any time", func(c *conditions) { c.entry, c.adoptsNone = ever, true }, nil},
		{"tombstones, 20 s after the look", func(c *conditions) { c.tombstone = old }, []string{neverReserved}},
		{"no look after the tombstone, and 20 s", func(c *conditions) { c.once, c.tombstone, c.again = true, old, old },
			[]string{reservationDeleted, neverReserved}},
		{"deletions, at any time after the look that follows the tombstone", func(c *conditions) { c.again = ever }, nil},
		{"weak tokens", func(c *conditions) { c.weak = true }, nil},
		{"weak tokens, 20 s after the look", func(c *conditions) { c.weak, c.tombstone = true, old }, []string{reservationDeleted}},

		// No age is short enough for an ADD that begins with its pod. What has a tombstone is
		// safe from it even so, and so are the entries.
		{"a fast ADD", func(c *conditions) { c.starts = 0 }, []string{neverReserved}},
		{"a fast ADD, and no look after the tombstone", func(c *conditions) { c.starts, c.once = 0, true },
			[]string{reservationDeleted, neverReserved}},
		{"a fast ADD, and weak tokens", func(c *conditions) { c.starts, c.weak = 0, true },
			[]string{reservationDeleted, neverReserved}},
	} {
		if testing.Short() && n%3 > 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := program
				tt.but(&c)
				lost, outcomes := make(map[string]script), make(map[report.Outcome]int)
				scripts(c.del, func(s script) (ended bool) {
					m := newAgesModel(t, c, s)
					report, _ := reaper.Run(t.Context(), m.options()) // a release that fails is an outcome
					for _, e := range report.Entries {
						outcomes[e.Outcome]++
					}
					if m.finish(); m.broken != "" && newAgesModel(t, c, s).finish() == "" {
						lost[m.broken] = s
					}
					return m.ended
				})
				if outcomes[report.Released] == 0 || outcomes[report.Returned] == 0 {
					t.Errorf("the scripts have no race: %v", outcomes)
				}
				if got := slices.Sorted(maps.Keys(lost)); !slices.Equal(got, tt.want) {
					t.Errorf("%+v got lost, want %q", lost, tt.want)
				}
			})
		})
	}
}

// A forever is a backend for which no look is too old.
type forever struct{ ipam.Backend }

func (b forever) Release(ctx context.Context, ws []ipam.Warrant) []error {
	for i := range ws {
		ws[i] = lookedAt(ws[i], time.Now())
	}
	return b.Backend.Release(ctx, ws)
}

// Promise 1. Where each sandbox gets its own allocation, no look is too old. The ADD of a new
// sandbox writes the handle, then the address.
func TestModelAllocationsOfASandboxNeedNoFreshLook(t *testing.T) {
	points := []string{"before", "get", "release", "settle", "end"}
	for n := range len(points) * len(points) * len(points) {
		create, handle, address := n/25, n/5%5, n%5
		if create > handle || handle > address {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			store := backendtest.NewHandled("handled")
			h := newHarness(forever{store.Backend()})
			h.addPods(t, store, "live-1", "gone-1")
			owner := app("gone-1")
			owner.UID, owner.Sandbox = "now", "now"
			at := -1
			reach := func(request string) error {
				point, _, _ := strings.Cut(request, " ")
				for at < slices.Index(points, point) {
					if at++; at == create {
						h.pods.Add(census.Pod{Ref: owner.Pod, UID: "now", AddressUnknown: true, Starting: true})
					}
					if at == handle {
						time.Sleep(time.Minute)
						store.Begin("now")
					}
					if at == address {
						_, err := store.Reserve("a", owner)
						equal(t, "ADD", err, nil)
					}
				}
				return nil
			}
			store.OnRequest(reach)
			h.pods.OnCall(reach)
			_ = reach("before")
			_, _ = reaper.Run(t.Context(), h.options())
			_ = reach("end")
			if held := fmt.Sprint(contentsOf(t, store)); !strings.Contains(held, "of now ") || strings.Contains(held, "without a handle") {
				t.Errorf("the pod before %s, the handle before %s, the address before %s: %v", points[create], points[handle], points[address], held)
			}
		})
	}
}
