package run_test

import (
	"context"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/bench/storm"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// Pods come and go, crash, and come back under their names, with real ADDs and DELs, while the
// reaper runs repeatedly without a grace period. No existing pod ever lacks what its ADD got, and
// in the end one run leaves nothing (promises 1, 8 and 9). ADDs fail only because a pool is full.
func TestEveryStorm(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 6
	}
	for name, run := range map[string]func(context.Context, *calico.Datastore) (storm.Tally, error){
		"whereabouts": func(ctx context.Context, d *calico.Datastore) (storm.Tally, error) {
			return storm.OfWhereabouts(ctx, d.Cluster, rounds)
		},
		"calico": func(ctx context.Context, d *calico.Datastore) (storm.Tally, error) {
			return storm.OfCalico(ctx, d, rounds)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster.StartT(t)
			c.ResetT(t)
			// Calico's data must always exist: a reaper that finds its resources defined, but
			// nothing else, does not believe that.
			d, err := calico.OnKubernetes(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := run(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", got)
			for _, text := range got.Violations {
				t.Error(text)
			}
			if len(got.Refused) > 0 {
				t.Errorf("ADDs and DELs failed: %q", got.Refused)
			}
			if got.Adds == 0 || got.Crashes == 0 || got.Dels == 0 || got.Comebacks == 0 || got.Checked == 0 || got.Released == 0 {
				t.Error("that was no storm")
			}
		})
	}
}
