package run_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A pod whose second look hangs costs its own allocation an attempt, and no other
// allocation of the pool its release (promises 4 and 9).
func TestLookThatHangsSpoilsNoOther(t *testing.T) {
	slow := func(r proxy.Request) bool { return r.String() == "get pods" && r.Name == "web-1" }
	for _, tt := range []struct {
		name   string
		match  proxy.Match
		exit   int
		web1   string
		writes int // of the pool
	}{
		{"once", proxy.Nth(1, slow), reap.ExitDone, released, 2},
		{"always", slow, reap.ExitPartial, failed, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			for _, pod := range []string{"web-0", "web-1", "web-2"} {
				f.leak(pod)
			}
			gate := proxy.NewGate() // nothing opens it
			f.toReaper.Before(tt.match, gate.Hook)
			result := f.reap(tt.exit, atOnce)
			f.wantSaid(result.Report, decisions{"web-0": released, "web-1": tt.web1, "web-2": released})
			var left []string
			if tt.web1 == failed {
				left = []string{"shop/web-1 sandbox-of-web-1"}
			}
			if diff := cmp.Diff(left, slices.Collect(maps.Values(f.owners()))); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if got := f.toReaper.Counts()["patch ippools"]; got != tt.writes {
				t.Errorf("%d writes of the pool, want %d", got, tt.writes)
			}
			reads := map[string]int{}
			for _, r := range f.toReaper.Requests() {
				if r.String() == "get pods" {
					reads[r.Name]++
				}
			}
			want := map[string]int{"web-0": 1, "web-1": 2, "web-2": 1}
			if tt.web1 == failed {
				want["web-1"] = 6 // the first attempt decides on the others
				f.wantText(result.Stderr, "get pod shop/web-1: the second look took too long")
			}
			if diff := cmp.Diff(want, reads); diff != "" {
				t.Errorf("second looks (-want +got):\n%s", diff)
			}
		})
	}
}
