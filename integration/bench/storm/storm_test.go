package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

func TestMain(m *testing.M) {
	kit.Main(m, kit.Options{Sets: []kit.Set{kit.Calico}, WatchCache: true})
}

// small is what a test can afford. Each worker brings so many pods, however long
// it takes.
var small = size{length: time.Second, rounds: 10, workers: 3, bits: 27, seed: 1}

// must ends the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Pods come and go, crash, and come back under their names, with real ADDs and
// DELs, while the reaper runs over and over without grace. No pod that exists ever
// lacks what its ADD got, and at the end one run leaves nothing (promises 1, 8
// and 9). Each DEL leaves nothing of its sandbox, and no ADD fails but
// for a full pool. The control shows that the storm leaves something without the reaper.
func TestEveryStorm(t *testing.T) {
	size := small
	if testing.Short() {
		size.rounds = 6
	}
	for _, name := range []string{"whereabouts", "calico"} {
		t.Run(name, func(t *testing.T) {
			c := cluster.StartT(t)
			c.ResetT(t)
			program, err := reap.New()
			must(t, err)
			clean, err := reaper(c, program)
			must(t, err)
			with, err := play(t.Context(), c, name, size, clean)
			must(t, err)
			results := []result{with}
			if !testing.Short() || name == "whereabouts" {
				control, err := play(t.Context(), c, name, size, nil)
				must(t, err)
				if control.runs != 0 || kinds(control.leaked) == "nothing" || kinds(control.left) == "nothing" {
					t.Error("the control leaves nothing")
				}
				results = append(results, control)
			}
			var out bytes.Buffer
			must(t, tell(&out, results))
			t.Logf("\n%s", &out)

			for _, r := range results {
				if len(r.violations) > 0 {
					t.Errorf("%s: %d violations", r.name, len(r.violations))
				}
				if len(r.refused) > 0 {
					t.Errorf("%s: ADDs and DELs failed: %q", r.name, r.refused)
				}
				if r.adds < size.workers*residents || r.crashes == 0 || r.dels == 0 || r.comebacks == 0 || r.checked < r.adds {
					t.Errorf("%s: that was no storm", r.name)
				}
			}
			if with.released == 0 || with.exits[reap.ExitDone] == 0 {
				t.Error("the reaper was not at work")
			}
			if with.exits[reap.ExitDone]+with.exits[reap.ExitPartial] != with.runs { // a busy machine may be too slow for a warrant
				t.Errorf("runs that failed: %q", with.complaints)
			}
		})
	}
}

// sabotage is the tally of a storm that stands still: one pod has got its ADD's
// answer, and then, in place of the reaper, the function does something to it.
func sabotage(t *testing.T, name string, do func(ctx context.Context, s *storm, victim *sandbox) error) tally {
	t.Helper()
	c := cluster.StartT(t)
	c.ResetT(t)
	d, err := calico.OnKubernetes(t.Context(), c)
	must(t, err)
	var i ipam = newWhereabouts(c, small)
	if name == "calico" {
		i = newCalico(d, small.bits)
	}
	var s *storm
	s = newStorm(c, i, small, func(ctx context.Context) (reap.Result, error) {
		report := &reap.Report{}
		for _, victim := range s.roster.there() {
			if err := do(ctx, s, victim); err != nil {
				return reap.Result{}, err
			}
			report.Entries = append(report.Entries, reap.Entry{Backend: "overlapping", IP: victim.ip.String(), Outcome: "released"})
		}
		return reap.Result{Report: report}, nil
	})
	must(t, s.prepare(t.Context()))
	w := newWorker(s, 0)
	must(t, w.round(t.Context()))
	must(t, s.look(t.Context(), true))
	s.judge()
	if len(s.tally.violations) > 0 || s.tally.checked != 1 {
		t.Fatalf("before anything is done: %+v", s.tally)
	}
	must(t, s.reap(t.Context()))
	must(t, s.look(t.Context(), false))
	s.judge()
	return s.tally
}

// The checker finds a reaper that releases any allocation of a pod.
func TestSabotageIsFound(t *testing.T) {
	for _, tt := range []struct {
		name, ipam string
		do         func(ctx context.Context, s *storm, victim *sandbox) error
		want       []string // in the violations
	}{
		{"the entry of the pool is released", "whereabouts", removeEntry, []string{"pool entry 10.60.0.0-27 10.60.0.1 does not exist"}},
		{"the reservation is released", "whereabouts", removeReservation,
			[]string{"reservation 10.60.0.1 does not exist", "reported the release of overlapping 10.60.0.1"}},
		{"the address is released", "calico", func(ctx context.Context, s *storm, victim *sandbox) error {
			_, err := s.ipam.(*calicoIPAM).Calicoctl(ctx, "", "ipam", "release", "--ip="+victim.ip.String())
			return err
		}, []string{"the address 10.70.0.", "does not exist"}},
		{"the handle is released", "calico", func(ctx context.Context, s *storm, victim *sandbox) error {
			c := s.ipam.(*calicoIPAM)
			return c.Delete(ctx, calico.Handle, c.HandleName(c.of(victim).Handle()))
		}, []string{"the handle k8s-pod-network.", "does not exist"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := sabotage(t, tt.ipam, tt.do)
			text := strings.Join(got.violations, "\n")
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("violations %q, want one with %q", got.violations, want)
				}
			}
			if len(got.forgotten) > 0 {
				t.Errorf("excused: %q", got.forgotten)
			}
		})
	}
}
