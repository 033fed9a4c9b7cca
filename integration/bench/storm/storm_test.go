package storm

import (
	"context"
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
			with := play(t, c, name, size, clean)
			if with.released == 0 || with.exits[reap.ExitDone] == 0 {
				t.Error("the reaper was not at work")
			}
			if with.exits[reap.ExitDone]+with.exits[reap.ExitPartial] != with.runs { // a busy machine may be too slow for a warrant
				t.Errorf("runs that failed: %q", with.complaints)
			}
			if testing.Short() && name != "whereabouts" {
				return
			}
			c.ResetT(t)
			if control := play(t, c, name, size, nil); control.runs != 0 || control.left == 0 {
				t.Error("the control leaves nothing")
			}
		})
	}
}

// play is one storm on an empty cluster, which must not violate anything.
func play(t *testing.T, c *cluster.Cluster, name string, size size, clean func(context.Context) (reap.Result, error)) tally {
	t.Helper()
	// Calico's data are there in any case: a reaper that finds its resources
	// defined, and nothing else, does not believe that.
	d, err := calico.OnKubernetes(t.Context(), c)
	must(t, err)
	var i ipam = newWhereabouts(c, size)
	if name == "calico" {
		i = newCalico(d, size.bits)
	}
	got, err := newStorm(c, i, size, clean).run(t.Context())
	must(t, err)
	t.Logf("%+v", got)
	for _, text := range got.violations {
		t.Error(text)
	}
	if len(got.refused) > 0 {
		t.Errorf("ADDs and DELs failed: %q", got.refused)
	}
	if got.adds < size.workers*residents || got.crashes == 0 || got.dels == 0 || got.comebacks == 0 || got.checked < got.adds {
		t.Error("that was no storm")
	}
	return got
}
