package upgrade_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
)

// soon is longer than a run takes.
const soon = 5 * time.Minute

// since returns the shortest time that has passed since all of these times.
func since(times ...time.Time) time.Duration {
	return time.Since(slices.MaxFunc(times, time.Time.Compare)).Truncate(time.Second)
}

// inherits has a program take over what another version left in the scene. Each step is one
// of what users rely on.
func (s *scene) inherits(p program, l legacy) {
	waiting := slices.Collect(maps.Values(l.Waiting))
	places := slices.Sorted(maps.Keys(l.Waiting))
	number := s.ledgerMaps()
	s.sub("it respects a lock", func() { s.respects(p, l) })
	s.sub("it takes over an expired lock, and every grace period and hold goes on", func() {
		spec := l.Killed
		spec.RenewTime = new(metav1.NewMicroTime(spec.RenewTime.Add(-time.Minute)))
		s.setLease(spec)
		before := s.stores().Bytes()
		slow := since(waiting...) + soon
		r := s.run(p, reap.ExitDone, terms(day, slow, since(l.HeldSince)+soon))
		s.wantWaiting(r, l, slow)
		s.wantPlaces("held", l.Held, r.where(restored))
		if r.Summary.Released > 0 || len(r.Warnings) > 0 {
			s.Errorf("%d were released, with warnings %q", r.Summary.Released, r.Warnings)
		}
		snapshot.WantT(s, "after a run", before, s.stores().Bytes())
		want := *l.Killed.LeaseTransitions + 1
		if lease := s.lease(); *lease.HolderIdentity != "" || *lease.LeaseTransitions != want {
			s.Errorf("the lock is %q's after %d transitions, want no holder after %d", *lease.HolderIdentity, *lease.LeaseTransitions, want)
		}
	})
	s.sub("each ends when it would have ended", func() {
		s.setLease(l.Free)
		over := s.run(p, reap.ExitDone, terms(0, since(waiting...), since(l.HeldSince)), "--dry-run")
		s.wantPlaces("due", append(places, l.Held...), over.where(planned))
	})
	s.sub("it tells what was released", func() {
		told := historyOf(s, s.end(s.start(p, "history", terms(0, day, day), "--run="+l.Run), reap.ExitDone))
		if len(told.Runs) != 1 || len(told.Warnings) > 0 {
			s.Fatalf("a history of %d runs, with warnings %q", len(told.Runs), told.Warnings)
		}
		wantKept(s, "history", l.History, told.Runs[0])
	})
	s.sub("it puts everything back, to the byte", func() {
		s.end(s.start(p, "restore", terms(0, day, day), "--run="+l.Run), reap.ExitDone)
		snapshot.WantT(s, "after the restore", s.before, s.stores().Bytes())
	})
	s.sub("it releases what is due then, and nothing else", func() {
		r := s.run(p, reap.ExitDone, terms(0, since(waiting...), day))
		s.wantPlaces("released", places, r.where(released))
	})
	if now := s.ledgerMaps(); now != number {
		s.Errorf("the ledger is in %d ConfigMaps, and was in %d", now, number)
	}
}

// respects fails the test unless a program does nothing while the version that was killed
// has the lock.
func (s *scene) respects(p program, l legacy) {
	s.Helper()
	spec := l.Killed
	spec.RenewTime = new(metav1.NowMicro())
	s.setLease(spec)
	before, state := s.stores().Bytes(), s.configMaps()
	locked := s.end(s.start(p, "run", terms(0, 0, 0)), reap.ExitLocked)
	if !strings.Contains(locked.Stderr, *spec.HolderIdentity+" has been running") {
		s.Errorf("it does not name %s:\n%s", *spec.HolderIdentity, locked.Stderr)
	}
	snapshot.WantT(s, "after a run that was locked out", before, s.stores().Bytes())
	if diff := cmp.Diff(state, s.configMaps()); diff != "" {
		s.Errorf("ConfigMaps after a run that was locked out (-want +got):\n%s", diff)
	}
}

// wantWaiting fails the test unless everything that waited still waits, since the same
// second, and until its grace period ends.
func (s *scene) wantWaiting(r report, l legacy, grace time.Duration) {
	s.Helper()
	got := r.where(suspected)
	for place, at := range l.Waiting {
		e, waits := got[place]
		switch {
		case !waits:
			s.Errorf("%s does not wait any more", place)
		case !stored(*e.FirstSeen).Equal(at) || !stored(*e.Due).Equal(at.Add(grace)):
			s.Errorf("%s is ownerless since %v and due at %v, want %v and %v", place, e.FirstSeen, e.Due, at, at.Add(grace))
		}
	}
}

// wantPlaces fails the test unless these allocations are in these places.
func (s *scene) wantPlaces(what string, want []string, got map[string]entry) {
	s.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// together starts two programs at the same time: the second one steps aside.
func (s *scene) together(first, second program) {
	s.Helper()
	process, gate := s.held(first, terms(day, day, day))
	locked := s.end(s.start(second, "run", terms(0, 0, 0)), reap.ExitLocked)
	gate.Open()
	r := reportOf(s, s.end(process, reap.ExitDone))
	if !strings.Contains(locked.Stderr, r.Run.ID+" has been running") {
		s.Errorf("it does not name run %s:\n%s", r.Run.ID, locked.Stderr)
	}
}
