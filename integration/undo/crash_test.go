package undo_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// undisturbed runs to the end, which every other run has to come to: nothing is left
// but what is in use. It returns the writes.
func (w *world) undisturbed() []string {
	w.Helper()
	r := w.run(releaseNow).Report
	for _, e := range r.Entries {
		if inUse := e.Owner.Pod == "live"; inUse == (e.Outcome == "released") {
			w.Errorf("%s %s of %s: %s %s", e.Backend, e.Key, e.Owner.Pod, e.Reason, e.Outcome)
		}
	}
	if r.Summary.Released != records {
		w.Errorf("%d were released, want %d", r.Summary.Released, records)
	}
	w.end = w.stores()
	return w.writes()
}

// starts starts a run that releases.
func (w *world) starts() *reap.Process { return w.start("run", releaseNow, inOrder) }

// A run that is killed before or after any of its writes has touched nothing that is
// in use. What it released is put back by its journal, to the byte, and where there is
// no journal, nothing was released. The next run comes to the same end as one that
// was never disturbed (promises 1, 8 and 10).
func TestRunThatIsKilledAtAnyWriteIsUndoneByItsJournal(t *testing.T) {
	w := newWorld(t, calico.KubernetesT(t))
	w.each(pointsOf(w.undisturbed()), func(p point) {
		w.again()
		w.killed(p, w.starts)
		w.wantInUse()
		for _, id := range w.journals() { // the one, or none
			w.restore(id)
		}
		w.wantStores("after the restoration", w.before)
		w.converge()
	})
}

// The next run finishes what a killed one has left, which here does many things at a
// time; and the journal of the killed one puts back what both have released.
func TestRunThatIsKilledAtAnyWriteIsFinishedByTheNext(t *testing.T) {
	w := newWorld(t, calico.KubernetesT(t))
	w.each(turns(w.undisturbed()), func(p point) {
		w.again()
		w.killed(p, func() *reap.Process { return w.start("run", releaseNow) })
		killed := w.journals()
		w.converge()
		for _, id := range killed {
			w.restore(id)
			w.wantStores("after the restoration", w.before)
		}
	})
}

// A restoration that is killed before or after any of its writes is finished by the
// next one.
func TestRestorationThatIsKilledAtAnyWriteIsFinishedByTheNext(t *testing.T) {
	w := newWorld(t, calico.KubernetesT(t))
	w.undisturbed()
	id := w.journals()[0]
	w.proxy.Reset()
	w.restore(id)
	w.each(pointsOf(w.writes()), func(p point) {
		w.put(w.end)
		w.unlock()
		w.killed(p, func() *reap.Process { return w.start("restore", releaseNow, "--run="+id) })
		w.wantInUse()
		w.restore(id)
		w.wantStores("after the next restoration", w.before)
	})
}

// converge runs until the stores are as at the end, to the byte.
func (w *world) converge() {
	w.Helper()
	w.runUntil(stores.settled)
}

// runUntil runs until a view of the stores is as at the end. What has lost its address
// by a crash, or was made again, has to wait, however short the grace period is: the
// run that sees it first is had to be long ago.
func (w *world) runUntil(view func(stores) map[string]string) {
	w.Helper()
	want := view(w.end)
	for range 2 {
		w.run(releaseNow)
		if maps.Equal(want, view(w.stores())) {
			return
		}
		w.backdate()
	}
	w.run(releaseNow)
	if diff := cmp.Diff(want, view(w.stores())); diff != "" {
		w.Errorf("stores in the end (-want +got):\n%s", diff)
	}
}

// wantInUse fails the test unless everything is there that an undisturbed run leaves.
func (w *world) wantInUse() {
	w.Helper()
	is := w.stores().held()
	for place, holder := range w.end.held() {
		if is[place] != holder {
			w.Errorf("%s: %q, want %q", place, is[place], holder)
		}
	}
}
