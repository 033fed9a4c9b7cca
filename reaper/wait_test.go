package reaper_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// A bed is where a run sleeps: the clock of its world moves on by as much as it
// sleeps, and by what it jumps.
type bed struct {
	slept []time.Duration
	jumps []time.Duration // at the first nap, the second one, and so on
	dream func(nap int) error
}

// in has the runs of the world wait, in this bed.
func (b *bed) in(w *world) *bed {
	change := w.change
	w.change = func(o *reaper.Options) {
		if change != nil {
			change(o)
		}
		o.Sleep = func(_ context.Context, d time.Duration) error {
			b.slept = append(b.slept, d)
			w.now = w.now.Add(d)
			if nap := len(b.slept); nap <= len(b.jumps) {
				w.now = w.now.Add(b.jumps[nap-1])
			}
			if b.dream != nil {
				return b.dream(len(b.slept))
			}
			return nil
		}
	}
	return b
}

// total is how long it slept in all.
func (b *bed) total() time.Duration {
	var all time.Duration
	for _, d := range b.slept {
		all += d
	}
	return all
}

// sooner has the entry of gone-1 wait for no more than that.
func sooner(w *world, d time.Duration) {
	w.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"gone-1"}}, GracePeriod: &policy.Duration{Duration: d}}}
}

// Promise 4, 7, 10.
func TestWaitingRunReleasesWhenTheGracePeriodIsOver(t *testing.T) {
	w, _ := patient(t)
	b := (&bed{}).in(w)
	report := w.run(t)
	equal(t, "slept", b.slept, []time.Duration{15*time.Minute + time.Second})
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 3, InUse: 1, Planned: 2, Released: 2})
	equal(t, "began", report.Run.StartedAt, noon)
	equal(t, "finished", report.Run.FinishedAt, noon.Add(15*time.Minute+time.Second))
	equal(t, "first seen", *entryOf(t, report, "2").FirstSeen, noon)
	equal(t, "journal", w.journal.Read().Run, reaper.JournalRun{ID: "run-1", StartedAt: noon, Version: "v1", Cluster: "https://cluster"})
	equal(t, "records", len(w.journal.Read().Records), 2)
}

func TestRunThatSuspectsNothingDoesNotWait(t *testing.T) {
	w, _ := patient(t)
	w.policy.GracePeriod = &policy.Duration{}
	b := (&bed{}).in(w)
	equal(t, "released", w.run(t).Summary.Released, 2)
	equal(t, "naps", len(b.slept), 0)
}

// Promise 7. What was released at noon, and after five minutes, is in the report of
// the last look, and so is how full the pools were before.
func TestReportOfAWaitingRunHasWhatEarlierLooksReleased(t *testing.T) {
	w, m := patient(t)
	sooner(w, 5*time.Minute)
	w.policy.Rules = append(w.policy.Rules, policy.Rule{Match: policy.Match{Pods: []string{"gone-now"}}, GracePeriod: &policy.Duration{}})
	w.fill(t, m, "gone-now")
	b := (&bed{}).in(w)
	report := w.run(t)
	equal(t, "slept", b.slept, []time.Duration{5*time.Minute + time.Second, 10 * time.Minute})
	var order []string
	for _, e := range report.Entries {
		order = append(order, e.Key+" "+string(e.Outcome))
	}
	equal(t, "entries", order, []string{"4 released", "2 released", "1 kept", "3 released"})
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 4, InUse: 1, Planned: 3, Released: 3})
	equal(t, "summary of the backend", report.Backends[0].Counts, report.Summary)
	equal(t, "before and after", [2]int{report.Pools[0].AllocatedBefore, report.Pools[0].AllocatedAfter}, [2]int{4, 1})
	equal(t, "records", len(w.journal.Read().Records), 3)
	equal(t, "entries left", len(contentsOf(t, m)), 1)
}

// Promise 5.
func TestDryRunThatWaitsPlans(t *testing.T) {
	w, m := patient(t)
	sooner(w, 5*time.Minute)
	w.policy.DryRun = policy.Default().DryRun
	before := contentsOf(t, m)
	b := (&bed{}).in(w)
	asked := requests(m)
	report := w.run(t)
	equal(t, "slept", b.slept, []time.Duration{5*time.Minute + time.Second, 10 * time.Minute})
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 3, InUse: 1, Planned: 2})
	equal(t, "outcomes", outcomes(report), map[string]reaper.Outcome{"1": reaper.Kept, "2": reaper.Planned, "3": reaper.Planned})
	equal(t, "before and after", [2]int{report.Pools[0].AllocatedBefore, report.Pools[0].AllocatedAfter}, [2]int{3, 1})
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "requests", *asked, []string{"list", "list", "list"})
	equal(t, "writes of the ledger", w.notes.saves, 0)
}

// Promise 1.
func TestEntryWhoseOwnerComesBackWhileTheRunWaitsIsKept(t *testing.T) {
	w, m := patient(t)
	b := (&bed{}).in(w)
	b.dream = func(int) error {
		w.pods.Add(reaper.Pod{Ref: app("gone-1").Pod, UID: app("gone-1").UID})
		return nil
	}
	report := w.run(t)
	equal(t, "outcomes", outcomes(report), map[string]reaper.Outcome{"1": reaper.Kept, "2": reaper.Kept, "3": reaper.Released})
	equal(t, "verdict", told(t, report, "2"), finding{reaper.InUse, reaper.PodPresent, ""})
	equal(t, "entries left", len(contentsOf(t, m)), 2)
}

// What comes after the first look is for the next run, or one run would go on for
// ever.
func TestNewSuspicionsAreNotWaitedFor(t *testing.T) {
	w, m := patient(t)
	b := (&bed{}).in(w)
	b.dream = func(int) error {
		w.fill(t, m, "gone-3")
		return nil
	}
	report := w.run(t)
	equal(t, "naps", len(b.slept), 1)
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 4, InUse: 1, Suspected: 1, Planned: 2, Released: 2})
}

// Promise 7, 8. The report is that of the last look, and nothing is half done.
func TestWaitingRunEndsAtAnyTime(t *testing.T) {
	for nap, want := range map[int]reaper.Counts{
		1: {Entries: 3, InUse: 1, Suspected: 2},
		2: {Entries: 3, InUse: 1, Suspected: 1, Planned: 1, Released: 1},
	} {
		w, m := patient(t)
		sooner(w, 5*time.Minute)
		l := (&latch{}).on(w)
		ctx, cancel := context.WithCancel(t.Context())
		b := (&bed{}).in(w)
		b.dream = func(n int) error {
			if n == nap {
				cancel()
			}
			return ctx.Err()
		}
		report, err := reaper.Run(ctx, w.options())
		if partial := (*reaper.PartialError)(nil); !errors.Is(err, context.Canceled) || errors.As(err, &partial) {
			t.Errorf("run: %v, want it cancelled", err)
		}
		equal(t, "summary", report.Summary, want)
		equal(t, "entries left", len(contentsOf(t, m)), 3-want.Released)
		equal(t, "lock", l.calls, []string{"acquire run-1", "release"})
	}
}

// Promise 9. A refusal ends it, and so does a census that fails; what was released
// before stays in the report.
func TestWaitingRunEndsWithALookThatFails(t *testing.T) {
	for name, want := range map[string]reaper.Counts{
		"a limit":  {Entries: 3, InUse: 1, Planned: 2, Released: 1},
		"a census": {Entries: 3, Held: 2, Planned: 1, Released: 1},
	} {
		w, m := patient(t)
		sooner(w, 5*time.Minute)
		b := (&bed{}).in(w)
		b.dream = func(nap int) error {
			switch {
			case nap == 1:
			case name == "a limit":
				*w.policy.Limits.MaxFraction, *w.policy.Limits.MinEntries = 0.1, 0
			default:
				w.pods.OnCall(func(string) error { return forbidden })
			}
			return nil
		}
		report, err := reaper.Run(t.Context(), w.options())
		if limit := (*reaper.LimitError)(nil); errors.As(err, &limit) != (name == "a limit") || err == nil {
			t.Errorf("run that %s ends: %v", name, err)
		}
		equal(t, "naps", len(b.slept), 2)
		equal(t, "summary after "+name, report.Summary, want)
		equal(t, "entries left", len(contentsOf(t, m)), 2)
	}
}

// Promise 7. What failed at first is tried again by the next look.
func TestFailuresAreForgottenWhenALaterLookSucceeds(t *testing.T) {
	w, _ := patient(t)
	second := backendtest.NewMemory("second")
	w.backends = append(w.backends, second.Backend())
	second.OnRequest(func(string) error { return errConnection })
	b := (&bed{}).in(w)
	b.dream = func(int) error {
		second.OnRequest(nil)
		return nil
	}
	report := w.run(t)
	equal(t, "statuses", statuses(report), map[string]string{"memory": "ok", "second": "ok"})
	equal(t, "released", report.Summary.Released, 2)
}

// Promise 7. What was released and not finished is not tried again.
func TestUnfinishedReleaseOfAnEarlierLookIsAFailure(t *testing.T) {
	m := backendtest.NewHandled("memory")
	w := newWorld(m.Backend())
	w.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	sooner(w, 0)
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	w.fill(t, m, "live-1", "gone-1", "gone-2")
	m.Fumble()
	(&bed{}).in(w)
	report, failures := w.partial(t)
	const why = "released, but a later run has to remove the rest: the handle of sandbox-gone-1: the second write failed"
	equal(t, "failures", failures, []string{"memory: a: 2: " + why})
	equal(t, "released", report.Summary.Released, 2)
	equal(t, "statuses", statuses(report), map[string]string{"memory": "partial: unfinished releases: 1"})
}

// What every look finds is said once.
func TestWarningsOfSeveralLooksAreToldOnce(t *testing.T) {
	w, _ := patient(t)
	b := (&bed{}).in(w)
	w.journal.OnWrite(func() error { return forbidden })
	sooner(w, 5*time.Minute)
	report, _ := w.partial(t)
	equal(t, "naps", len(b.slept), 2)
	equal(t, "warnings", report.Warnings, []string{"nothing is released without a journal: " + forbidden.Error()})
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 3, InUse: 1, Planned: 2, Failed: 2})
}

// The timeout is that of a look, not of the waiting.
func TestTimeoutDoesNotCountTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := patient(t)
		began := time.Now()
		w.change = func(o *reaper.Options) {
			o.Timeout = time.Minute
			o.Now = func() time.Time { return noon.Add(time.Since(began)) }
			o.Sleep = func(ctx context.Context, d time.Duration) error {
				time.Sleep(d)
				return ctx.Err()
			}
		}
		equal(t, "released", w.run(t).Summary.Released, 2)
	})
}
