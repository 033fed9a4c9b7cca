package crash_test

import (
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// runs starts a run that releases one pool after the other.
func runs(w *kit.World) proxy.Starter {
	return w.Starts("run", kit.ReleaseNow, kit.InOrder, "--all")
}

// points are those around each write of a run, and with -short those of turns.
func points(writes []string) []proxy.Point {
	if testing.Short() {
		return turns(writes)
	}
	return proxy.Points(writes)
}

// first is the first point of a kind of write.
func first(points []proxy.Point, kind string) proxy.Point {
	return points[slices.IndexFunc(points, func(p proxy.Point) bool { return p.Kind() == kind })]
}

// turns are the points at which the stores have changed. With -short they are the
// first pool, the first tombstone, and a block whose handles are not written.
func turns(writes []string) []proxy.Point {
	all := proxy.Changing(proxy.Points(writes))
	if !testing.Short() {
		return all
	}
	return []proxy.Point{first(all, "patch ippools"), first(all, "patch overlappingrangeipreservations"), first(all, "update ipamblocks")}
}

// kill kills a process at a point.
func kill(w *kit.World, at proxy.Point, start proxy.Starter) {
	w.Helper()
	w.Must(proxy.Kill(w.Proxy, at, start))
}

// A run that is killed before or after any of its writes has touched nothing that is
// in use. Its journal puts back what it released, to the byte; without a journal it
// released nothing. The next run comes to the same end as one that was never
// disturbed, and the ledger knows since when everything waits (promises 1, 8 and 10).
func TestEveryKillIsUndoneByItsJournal(t *testing.T) {
	w, writes := fixture(t)
	begun := proxy.Changing(proxy.Points(writes))
	w.Each(points(writes), func(p proxy.Point) {
		w.Again()
		kill(w, p, runs(w))
		w.WantInUse()
		if n := len(seen(w)); n != kit.Records+kit.Waits && slices.Contains(begun, p) {
			w.Errorf("the ledger remembers %d entries, want all until the end", n)
		}
		for _, id := range w.Journals() { // the one, or none
			w.Restore(id)
		}
		w.WantStores("after the restoration", w.Before)
		w.Converge()
	})
}

// The next run finishes what a killed one has left, which here does many things at a
// time; and the journal of the killed one puts back what both have released
// (promises 8 and 10).
func TestEveryKillIsFinishedByTheNextRun(t *testing.T) {
	w, writes := fixture(t)
	w.Each(turns(writes), func(p proxy.Point) {
		w.Again()
		kill(w, p, w.Starts("run", kit.ReleaseNow))
		w.WantInUse()
		killed := w.Journals()
		w.Converge()
		for _, id := range killed {
			w.Restore(id)
			w.WantStores("after the restoration", w.Before)
		}
	})
}

// A restoration that is killed before or after any of its writes is finished by the
// next one (promises 8 and 10).
func TestEveryKillOfARestoration(t *testing.T) {
	w, id := released(t)
	w.Restore(id)
	all := proxy.Points(proxy.Writes(w.Proxy))
	if testing.Short() {
		all = kit.SampleBy(proxy.Changing(all), proxy.Point.Kind)
	}
	w.Each(all, func(p proxy.Point) {
		w.Put(w.End)
		w.Must(w.Memory.Unlock(w.Context()))
		w.Age() // the ledger of the restoration before may be of the same second
		kill(w, p, w.Starts("restore", kit.ReleaseNow, "--run="+id))
		w.WantInUse()
		w.Restore(id)
		w.WantStores("after the next restoration", w.Before)
	})
}

// seen is what the ledger remembers.
func seen(w *kit.World) map[string]int64 {
	w.Helper()
	all, err := w.Memory.Seen(w.Context())
	w.Must(err)
	return all
}
