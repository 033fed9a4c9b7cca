package crash_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/fault"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// runs starts a run that releases one pool after the other.
func runs(w *world.World) fault.Start {
	return w.Starts("run", world.ReleaseNow, world.InOrder, "--all")
}

// points are those of a run that releases all. With -short they are the one before
// the ledger is written, the two around a tombstone, and the last one at which a
// store has changed.
func points(writes []string) []fault.Point {
	all := fault.Points(writes)
	if !testing.Short() {
		return all
	}
	some := []fault.Point{first(all, "update configmaps")}
	tombstone := first(all, "patch overlappingrangeipreservations")
	changing := fault.Changing(all)
	return append(some, tombstone, fault.Point{After: true, N: tombstone.N, Write: tombstone.Write}, changing[len(changing)-1])
}

// first is the first point of a kind of write.
func first(points []fault.Point, kind string) fault.Point {
	return points[slices.IndexFunc(points, func(p fault.Point) bool { return p.Kind() == kind })]
}

// turns are the points at which the stores have changed. With -short they are the
// first pool, the first tombstone, and a block whose handles are not written.
func turns(writes []string) []fault.Point {
	all := fault.Changing(fault.Points(writes))
	if !testing.Short() {
		return all
	}
	return []fault.Point{first(all, "patch ippools"), first(all, "patch overlappingrangeipreservations"), first(all, "update ipamblocks")}
}

// kill kills a process at a point.
func kill(w *world.World, at fault.Point, start fault.Start) {
	w.Helper()
	w.Must(fault.Kill(w.Proxy, at, start))
}

// A run that is killed before or after any of its writes has touched nothing that is
// in use. Its journal puts back what it released, to the byte; without a journal it
// released nothing. The next run comes to the same end as one that was never
// disturbed (promises 1, 8 and 10).
func TestEveryKillIsUndoneByItsJournal(t *testing.T) {
	w, writes := fixture(t)
	w.Each(points(writes), func(p fault.Point) {
		w.Again()
		kill(w, p, runs(w))
		w.WantInUse()
		for _, id := range w.Journals() { // the one, or none
			w.Restore(id)
		}
		w.WantStores("after the restoration", w.Before)
		w.Converge()
		w.Outlast()
	})
}

// The next run finishes what a killed one has left, which here does many things at a
// time; and the journal of the killed one puts back what both have released
// (promises 8 and 10).
func TestEveryKillIsFinishedByTheNextRun(t *testing.T) {
	w, writes := fixture(t)
	w.Each(turns(writes), func(p fault.Point) {
		w.Again()
		kill(w, p, w.Starts("run", world.ReleaseNow))
		w.WantInUse()
		killed := w.Journals()
		w.Converge()
		for _, id := range killed {
			w.Restore(id)
			w.WantStores("after the restoration", w.Before)
		}
		w.Outlast()
	})
}

// A restoration that is killed before or after any of its writes is finished by the
// next one (promises 8 and 10).
func TestEveryKillOfARestoration(t *testing.T) {
	w, id := released(t)
	w.Restore(id)
	all := fault.Points(fault.Writes(w.Proxy))
	if testing.Short() {
		all = kit.Sample(fault.Changing(all))
	}
	w.Each(all, func(p fault.Point) {
		w.Put(w.End)
		w.Must(w.Memory.Unlock(w.Context()))
		w.Age() // the ledger of the restoration before may be of the same second
		kill(w, p, w.Starts("restore", world.ReleaseNow, "--run="+id))
		w.WantInUse()
		w.Restore(id)
		w.WantStores("after the next restoration", w.Before)
	})
}

// A grace period that is over stays over, and one that is not does not begin anew,
// at whichever write of the ledger the run that counts it is killed (promise 8).
func TestKilledRunDoesNotRestartTheGracePeriod(t *testing.T) {
	const (
		patient = world.Policy + "gracePeriod: 90m\n"
		all     = world.Records + world.Waits
	)
	w, _ := fixture(t)
	nothing := func() {}
	for _, tt := range []struct {
		name     string
		before   func() // the run that is killed, when everything is due
		write    string
		after    bool
		remember int // entries in the ledger after the kill
		begins   bool
	}{
		{"before the ledger is created", func() { w.Must(w.Memory.ForgetLedger(w.Context())) }, "create configmaps", false, 0, true},
		{"after the ledger is created", func() { w.Must(w.Memory.ForgetLedger(w.Context())) }, "create configmaps", true, all, true},
		{"after a tombstone is written", nothing, "patch overlappingrangeipreservations", true, all, false},
		{"before the ledger forgets", nothing, "update configmaps", false, all, false},
		{"after the ledger forgets", nothing, "update configmaps", true, world.Waits, false},
	} {
		w.Sub(tt.name, func() {
			begin := func() {
				w.Again()
				w.Age() // by a second hour
				tt.before()
				w.Proxy.Reset()
			}
			begin()
			w.Run(patient)
			points := fault.Points(fault.Writes(w.Proxy))
			at := first(points, tt.write)
			if tt.write == "update configmaps" { // the first one is before the releases
				slices.Reverse(points)
				at = first(points, tt.write)
			}
			at.After = tt.after
			begin()
			got := len(seen(w, func() { kill(w, at, w.Starts("run", patient, world.InOrder)) }))
			w.WantInUse()
			if got != tt.remember {
				w.Errorf("the ledger remembers %d entries, want %d", got, tt.remember)
			}
			if tt.begins {
				w.Run(patient)
				w.WantStores("before the grace period is over", w.Before)
				w.Must(w.Memory.Age(w.Context(), 2*time.Hour))
			}
			w.Run(patient)
			w.WantStores("after the grace period", w.End)
			if got := len(seen(w, func() { w.Run(patient) })); got != world.Waits {
				w.Errorf("in the end the ledger remembers %d entries, want %d", got, world.Waits)
			}
		})
	}
}

// seen does something and returns what the ledger remembers then.
func seen(w *world.World, do func()) map[string]int64 {
	w.Helper()
	do()
	all, err := w.Memory.Seen(w.Context())
	w.Must(err)
	return all
}
