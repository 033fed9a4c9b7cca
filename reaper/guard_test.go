package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A stalled run has its plan, and does not go on until others have acted.
type stalled struct {
	*testing.T
	*harness
	lapsed, changed func() error // what its lock says from now on, and its policy; nil: all is as it was
}

// edit changes the stored ledger as others do.
func (s *stalled) edit(change func(ledger.Ledger) ledger.Ledger) {
	s.Helper()
	l, err := ledger.Decode(s.ledgers.stored)
	if err != nil {
		s.Fatal(err)
	}
	s.ledgers.stored = change(l).Encode()
}

// putBack marks the allocation with the key 2 as a restore does that puts it back. Another run had
// released it, and the store is then as it was.
func (s *stalled) putBack() {
	s.Helper()
	s.edit(func(l ledger.Ledger) ledger.Ledger {
		return l.WithRestored(func(yield func(*ipam.Allocation, ledger.Place) bool) {
			for a := range inventory(s.T, s.backends...).Allocations() {
				if a.Key == "2" {
					yield(a, ledger.Place{})
				}
			}
		}, s.now.Add(time.Minute))
	})
}

// forAMoment returns an error only when it is asked first.
func forAMoment(err error) func() error {
	return func() (now error) {
		now, err = err, nil
		return now
	}
}

// Promise 1, 2, 7. Of two addresses that a run is about to release, what others do to the state after its
// plan keeps some, or ends the releases. It frees none.
func TestRunThatStallsAfterItsPlan(t *testing.T) {
	const kept, released, notBegun = report.Kept, report.Released, report.NotBegun
	busy := fmt.Errorf("%w: busy", ipam.ErrAgain)
	for _, tt := range []struct {
		name      string
		saving    func(s *stalled) error // while its ledger is saved, before the plan counts
		meanwhile func(s *stalled)       // afterwards
		want      [2]report.Fate         // of the keys 2 and 3
		failure   string                 // of the run
	}{
		{name: "another run saves its end", meanwhile: func(s *stalled) {
			s.edit(func(l ledger.Ledger) ledger.Ledger { return l.WithRun(ledger.Run{ID: "run-2", Ended: true}, nil) })
		}, want: [2]report.Fate{released, released}},
		{name: "an address is put back", meanwhile: (*stalled).putBack, want: [2]report.Fate{kept, released}},
		{name: "an address is put back before the ledger is saved", saving: func(s *stalled) error {
			s.putBack()
			return busy
		}, want: [2]report.Fate{kept, released}},
		{name: "the answer to the save is lost", saving: func(s *stalled) error {
			s.ledgers.lose = func(ledger.Ledger) bool { s.ledgers.lose = nil; return true }
			return nil
		}, want: [2]report.Fate{released, released}},
		{name: "the answer is lost, and the ledger cannot be read for a moment", saving: func(s *stalled) error {
			s.ledgers.lose = func(ledger.Ledger) bool { s.ledgers.lose = nil; return true }
			s.ledgers.onLoad = forAMoment(errConnection)
			return nil
		}, meanwhile: (*stalled).putBack, want: [2]report.Fate{kept, released}, failure: "save the ledger: " + errConnection.Error()},
		{name: "the ledger is gone", meanwhile: func(s *stalled) {
			s.ledgers.stored = nil
		}, want: [2]report.Fate{notBegun, notBegun}, failure: "it is gone: 0 of 2 addresses released (0 of 2 allocations)"},
		{name: "the ledger is emptied", meanwhile: func(s *stalled) {
			s.edit(func(ledger.Ledger) ledger.Ledger { return ledger.Ledger{} })
		}, want: [2]report.Fate{notBegun, notBegun}, failure: "the ledger was emptied while the run went on: 0 of 2 addresses released (0 of 2 allocations)"},
		{name: "the ledger is damaged", meanwhile: func(s *stalled) {
			s.ledgers.stored = []byte("damaged")
		}, want: [2]report.Fate{notBegun, notBegun}, failure: damage(t) + ": 0 of 2 addresses released (0 of 2 allocations)"},
		{name: "a newer version writes the ledger", meanwhile: func(s *stalled) {
			s.putBack()
			s.ledgers.onLoad = func() error { return ledger.ErrNewer }
		}, want: [2]report.Fate{notBegun, notBegun}, failure: ledger.ErrNewer.Error() + ": 0 of 2 addresses released (0 of 2 allocations)"},
		{name: "the policy is changed", meanwhile: func(s *stalled) {
			s.changed = func() error { return errors.New("the policy has changed") }
		}, want: [2]report.Fate{notBegun, notBegun}, failure: "the policy has changed: 0 of 2 addresses released (0 of 2 allocations)"},
		{name: "the policy cannot be read for a moment", meanwhile: func(s *stalled) {
			s.changed = forAMoment(busy)
		}, want: [2]report.Fate{released, released}},
		{name: "the lock is lost", meanwhile: func(s *stalled) {
			s.lapsed = func() error { return errors.New("the lock was lost") }
		}, want: [2]report.Fate{notBegun, notBegun}, failure: "the lock was lost: 0 of 2 addresses released (0 of 2 allocations)"},
		{name: "the lock lapses", meanwhile: func(s *stalled) {
			s.lapsed = func() error { return busy }
		}, want: [2]report.Fate{notBegun, notBegun}, failure: busy.Error() + ": 0 of 2 addresses released (0 of 2 allocations)"},
		{name: "the lock lapses, and is renewed", meanwhile: func(s *stalled) {
			s.lapsed = forAMoment(busy)
		}, want: [2]report.Fate{released, released}},
	} {
		for _, forced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, --release-restored=%t", tt.name, forced), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, _ := memoryHarness(t, "live-1", "gone-2", "gone-3")
					if forced {
						h.policy.Journal.RestoreHold = &policy.Duration{}
					}
					s := &stalled{T: t, harness: h}
					s.ledgers.stored = ledgertest.Ledger{Salt: [16]byte{1}}.Encode()
					s.ledgers.onSave = func() error {
						s.ledgers.onSave = nil
						if tt.saving == nil {
							return nil
						}
						return tt.saving(s)
					}
					s.journal.OnWrite(func() error {
						if tt.meanwhile != nil {
							tt.meanwhile(s)
						}
						return nil
					})
					(&fakeLock{lapsed: func() error { return s.says(s.lapsed) }}).attach(h)
					h.also(func(o *reaper.Options) {
						o.SamePolicy = func(context.Context) error { return s.says(s.changed) }
					})
					rep, err := reaper.Run(t.Context(), h.options())
					equal(t, "outcomes", [2]report.Fate{entryOf(t, rep, "2").Outcome, entryOf(t, rep, "3").Outcome}, tt.want)
					failure := ""
					if err != nil {
						failure = err.Error()
					}
					equal(t, "failure", failure, tt.failure)
					if tt.want[0] == kept && !strings.Contains(s.ledgers.text(t), `"restored":{"`) {
						t.Errorf("the run has saved %s, without what was put back", s.ledgers.text(t))
					}
				})
			})
		}
	}
}

// says returns the error of a hook; nil without one.
func (s *stalled) says(hook func() error) error {
	if hook == nil {
		return nil
	}
	return hook()
}

// damage returns what is said of a ledger that is damaged.
func damage(t *testing.T) string {
	t.Helper()
	_, err := ledger.Decode([]byte("damaged"))
	if !errors.Is(err, ledger.ErrDamaged) {
		t.Fatal(err)
	}
	return err.Error()
}

// Promise 1, 7. A run that stalls in the middle of its releases reports what it has released, and that the rest was
// not begun. A warrant of before the stall permits nothing afterwards.
func TestRunThatStallsBetweenTwoReleases(t *testing.T) {
	h := newHarness()
	h.pods.Add(census.Pod{Ref: other})
	lost := false
	var ws []ipam.Warrant
	h.backends = []ipam.Backend{wrapped{fixedStore{poolOf(allocations(3)...)}, func(_ context.Context, given []ipam.Warrant) []error {
		answers := make([]error, len(given))
		for i, w := range given {
			_, answers[i] = w.Allocation()
			lost = true
		}
		ws = given
		return answers
	}}}
	h.policy.Limits.MaxFraction = new(1.0)
	(&fakeLock{lapsed: func() error {
		if lost {
			return errors.New("the lock was lost")
		}
		return nil
	}}).attach(h)
	rep, failures := h.partial(t)
	equal(t, "warrants", len(ws), 3)
	equal(t, "failures", failures, []string{"the lock was lost: 1 of 3 addresses released (1 of 3 allocations)"})
	equal(t, "released", rep.Summary.Released, 1)
	equal(t, "not begun", rep.Summary.NotBegun, 2)
}
