package undo_test

import (
	"maps"

	"github.com/google/go-cmp/cmp"

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
