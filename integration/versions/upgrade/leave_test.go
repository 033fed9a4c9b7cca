package upgrade_test

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// day is how long waits what has to wait while a version leaves its state.
const day = 24 * time.Hour

// back is an address that is put back before another version takes over. An entry and a
// reservation of Whereabouts have it.
const back = "10.1.0.1"

// How many allocations are released, are put back, and wait: an entry and its reservation,
// another entry, and an address of Calico. An empty handle is never due in the first minutes.
const (
	releases = world.Records - 1
	holds    = 2
	waits    = 4
)

// A legacy is what a version has left behind: it saw what is ownerless, released what was
// due, put one address back, ran once more, and was killed in the midst of another run.
type legacy struct {
	Run        string                   // the ID of the run that released
	History    json.RawMessage          // that run, as the version tells of it
	Waiting    map[string]time.Time     // since when what waits has been ownerless, by place
	Held       []string                 // the places of what was put back
	HeldSince  time.Time                // to the second
	Stores     objects                  // in the end
	ConfigMaps []corev1.ConfigMap       // ledger and journal
	Free       coordinationv1.LeaseSpec // the lock after a run
	Killed     coordinationv1.LeaseSpec // the lock of the run that was killed
}

// leave has a version leave its state in the scene.
func (s *scene) leave(p program) legacy {
	s.Helper()
	s.run(p, reap.ExitDone, terms(time.Hour, day, day))
	release := s.run(p, reap.ExitDone, terms(0, day, day))
	if release.Summary.Released != releases {
		s.Fatalf("%d were released, want %d", release.Summary.Released, releases)
	}
	l := legacy{Run: release.Run.ID, Waiting: map[string]time.Time{}}
	s.end(s.start(p, "restore", terms(0, day, day), "--run="+l.Run, "--only="+back), reap.ExitDone)

	last := s.run(p, reap.ExitDone, terms(day, day, day))
	l.Held = slices.Sorted(maps.Keys(last.where(restored)))
	for place, e := range last.where(suspected) {
		l.Waiting[place] = stored(*e.FirstSeen)
	}
	if len(l.Held) != holds || len(l.Waiting) != waits || last.Summary.Released > 0 {
		s.Fatalf("held are %q, %v wait, and %d were released, want %d, %d and none", l.Held, l.Waiting, last.Summary.Released, holds, waits)
	}
	l.HeldSince = s.heldSince()
	told := historyOf(s, s.end(s.start(p, "history", terms(0, day, day), "--run="+l.Run), reap.ExitDone))
	if len(told.Runs) != 1 {
		s.Fatalf("a history of %d runs, want one", len(told.Runs))
	}
	l.History = told.Runs[0]
	l.Free = s.lease()

	process, gate := s.held(p, terms(day, day, day))
	s.must(process.Kill())
	s.end(process, reap.ExitedByKill)
	gate.Open()
	l.Killed = s.lease()
	l.Stores, l.ConfigMaps = objectsOf(s, s.stores()), s.configMaps()
	return l
}

// heldSince returns when the restore was, by the ledger.
func (s *scene) heldSince() time.Time {
	s.Helper()
	var latest int64
	for _, at := range s.ledger().Restored {
		latest = max(latest, at)
	}
	return time.Unix(latest, 0).UTC()
}
