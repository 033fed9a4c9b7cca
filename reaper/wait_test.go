package reaper_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A fakeSleep is the Sleep of a harness. It moves the clock on by the time that the run
// sleeps, and by its jumps.
type fakeSleep struct {
	slept   []time.Duration
	jumps   []time.Duration // at the first sleep, the second one, and so on
	onSleep func(nth int) error
}

// attach makes the runs of the harness wait with it.
func (sleep *fakeSleep) attach(h *harness) *fakeSleep {
	h.also(func(o *reaper.Options) {
		o.Sleep = func(_ context.Context, d time.Duration) error {
			sleep.slept = append(sleep.slept, d)
			h.now = h.now.Add(d)
			if nth := len(sleep.slept); nth <= len(sleep.jumps) {
				h.now = h.now.Add(sleep.jumps[nth-1])
			}
			if sleep.onSleep != nil {
				return sleep.onSleep(len(sleep.slept))
			}
			return nil
		}
	})
	return sleep
}

// total returns how long the runs slept in all.
func (sleep *fakeSleep) total() time.Duration {
	var all time.Duration
	for _, d := range sleep.slept {
		all += d
	}
	return all
}

// shortenGrace gives the allocation of gone-1 a shorter grace period.
func shortenGrace(h *harness, d time.Duration) {
	h.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"gone-1"}}, GracePeriod: &policy.Duration{Duration: d}}}
}

// Promise 4, 7, 10.
func TestWaitingRunReleasesWhenTheGracePeriodIsOver(t *testing.T) {
	h, _ := waitingHarness(t)
	sleep := (&fakeSleep{}).attach(h)
	rep := h.run(t)
	equal(t, "slept", sleep.slept, []time.Duration{15*time.Minute + time.Second})
	equal(t, "summary", rep.Summary, report.Counts{Entries: 3, InUse: 1, Planned: 2, Released: 2})
	equal(t, "began", rep.Run.StartedAt, noon)
	equal(t, "finished", rep.Run.FinishedAt, noon.Add(15*time.Minute+time.Second))
	equal(t, "first seen", *entryOf(t, rep, "2").FirstSeen, noon)
	equal(t, "journal", h.journal.Read().Run, journal.Run{ID: "run-1", StartedAt: noon, Version: "v1", Cluster: "https://cluster"})
	equal(t, "records", len(h.journal.Read().Records), 2)
}

// Promise 5.
func TestDryRunThatWaitsPlans(t *testing.T) {
	h, m := waitingHarness(t)
	shortenGrace(h, 5*time.Minute)
	h.policy.DryRun = policy.Default().DryRun
	before := contentsOf(t, m)
	sleep := (&fakeSleep{}).attach(h)
	asked := requests(m)
	rep := h.run(t)
	equal(t, "slept", sleep.slept, []time.Duration{5*time.Minute + time.Second, 10 * time.Minute})
	equal(t, "summary", rep.Summary, report.Counts{Entries: 3, InUse: 1, Planned: 2})
	equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"1": report.Kept, "2": report.Planned, "3": report.Planned})
	equal(t, "before and after", [2]int{rep.Pools[0].AllocatedBefore, rep.Pools[0].AllocatedAfter}, [2]int{3, 1})
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "requests", *asked, []string{"list", "list", "list"})
	equal(t, "writes of the ledger", h.ledgers.saves, 0)
}

// Promise 1.
func TestAllocationWhoseOwnerComesBackWhileTheRunWaitsIsKept(t *testing.T) {
	h, m := waitingHarness(t)
	sleep := (&fakeSleep{}).attach(h)
	sleep.onSleep = func(int) error {
		h.pods.Add(census.Pod{Ref: app("gone-1").Pod, UID: app("gone-1").UID})
		return nil
	}
	rep := h.run(t)
	equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"1": report.Kept, "2": report.Kept, "3": report.Released})
	equal(t, "verdict", reported(t, rep, "2"), decision{judge.InUse, judge.PodPresent, ""})
	equal(t, "allocations left", len(contentsOf(t, m)), 2)
}

// An allocation that is first seen ownerless after the first round is for the next run.
// Otherwise a run could go on for ever.
func TestNewSuspicionsAreNotWaitedFor(t *testing.T) {
	h, m := waitingHarness(t)
	sleep := (&fakeSleep{}).attach(h)
	sleep.onSleep = func(int) error {
		h.addPods(t, m, "gone-3")
		return nil
	}
	rep := h.run(t)
	equal(t, "sleeps", len(sleep.slept), 1)
	equal(t, "summary", rep.Summary, report.Counts{Entries: 4, InUse: 1, Suspected: 1, Planned: 2, Released: 2})
}

// What is too young to tell is not counted as leaked, and is not waited for. A later look judges it anew, by the time at
// which the first one saw it.
func TestRunDoesNotWaitForWhatIsTooYoung(t *testing.T) {
	for minAge, released := range map[time.Duration]int{20 * time.Minute: 2, 10 * time.Minute: 3} {
		m := backendtest.NewHandled("memory")
		h := newHarness(m.Backend())
		h.policy.GracePeriod, h.policy.MinAge = policy.Default().GracePeriod, &policy.Duration{Duration: minAge}
		m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
		h.addPods(t, m, "live-1", "gone-1", "gone-2")
		m.SetClock(func() time.Time { return noon })
		young := h.addPods(t, m, "gone-3")[0].Key
		sleep := (&fakeSleep{}).attach(h)
		rep := h.run(t)
		equal(t, "slept", sleep.slept, []time.Duration{15*time.Minute + time.Second})
		equal(t, "leaked and released", [2]int{rep.Leaked.Total, rep.Leaked.Released}, [2]int{released, released})
		equal(t, "undecided", rep.Leaked.Undecided, 3-released)
		equal(t, "when a run releases it", *entryOf(t, rep, young).Due, noon.Add(max(minAge, 15*time.Minute)))
		equal(t, "first seen", *entryOf(t, rep, young).FirstSeen, noon)
	}
}

// Promise 7. The limit applies to all sleeps together. What is due later stays suspected,
// and the report says when it is due.
func TestWaitingRunSleepsForMaxWaitAtMost(t *testing.T) {
	const first, second = 5*time.Minute + time.Second, 10 * time.Minute
	for _, tt := range []struct {
		maxWait time.Duration
		slept   []time.Duration
		summary report.Counts
	}{
		{0, []time.Duration{first, second}, report.Counts{Entries: 3, InUse: 1, Planned: 2, Released: 2}},
		{first + second, []time.Duration{first, second}, report.Counts{Entries: 3, InUse: 1, Planned: 2, Released: 2}},
		{first + second - 1, []time.Duration{first}, report.Counts{Entries: 3, InUse: 1, Suspected: 1, Planned: 1, Released: 1}},
		{first, []time.Duration{first}, report.Counts{Entries: 3, InUse: 1, Suspected: 1, Planned: 1, Released: 1}},
		{first - 1, nil, report.Counts{Entries: 3, InUse: 1, Suspected: 2}},
	} {
		h, m := waitingHarness(t)
		shortenGrace(h, 5*time.Minute)
		sleep := (&fakeSleep{}).attach(h)
		h.also(func(o *reaper.Options) { o.MaxWait = tt.maxWait })
		report := h.run(t)
		equal(t, "slept", sleep.slept, tt.slept)
		equal(t, "summary", report.Summary, tt.summary)
		equal(t, "allocations left", len(contentsOf(t, m)), 3-tt.summary.Released)
		if tt.summary.Suspected > 0 {
			equal(t, "due", *entryOf(t, report, "3").Due, noon.Add(15*time.Minute))
		}
	}
}

// Promise 7, 8. The report is that of the last round, and no release is half done.
func TestWaitingRunEndsAtAnyTime(t *testing.T) {
	for nth, want := range map[int]report.Counts{
		1: {Entries: 3, InUse: 1, Suspected: 2},
		2: {Entries: 3, InUse: 1, Suspected: 1, Planned: 1, Released: 1},
	} {
		h, m := waitingHarness(t)
		shortenGrace(h, 5*time.Minute)
		lock := (&fakeLock{}).attach(h)
		ctx, cancel := context.WithCancel(t.Context())
		sleep := (&fakeSleep{}).attach(h)
		sleep.onSleep = func(n int) error {
			if n == nth {
				cancel()
			}
			return ctx.Err()
		}
		rep, err := reaper.Run(ctx, h.options())
		if partial := (*report.PartialError)(nil); !errors.Is(err, context.Canceled) || errors.As(err, &partial) {
			t.Errorf("run: %v, want it cancelled", err)
		}
		equal(t, "summary", rep.Summary, want)
		equal(t, "allocations left", len(contentsOf(t, m)), 3-want.Released)
		equal(t, "lock", lock.calls, []string{"acquire run-1", "release"})
	}
}

// Promise 9. A refusal or a failed census ends the run. The report has the releases
// from before.
func TestWaitingRunEndsWithAFailedLook(t *testing.T) {
	for name, want := range map[string]report.Counts{
		"a limit":  {Entries: 3, InUse: 1, Planned: 2, Released: 1},
		"a census": {Entries: 3, Held: 2, Planned: 1, Released: 1},
	} {
		h, m := waitingHarness(t)
		shortenGrace(h, 5*time.Minute)
		sleep := (&fakeSleep{}).attach(h)
		sleep.onSleep = func(nth int) error {
			switch {
			case nth == 1:
			case name == "a limit":
				*h.policy.Limits.MaxFraction, *h.policy.Limits.MinEntries = 0.1, 0
			default:
				h.pods.OnCall(func(string) error { return errForbidden })
			}
			return nil
		}
		report, err := reaper.Run(t.Context(), h.options())
		if limit := (*judge.LimitError)(nil); errors.As(err, &limit) != (name == "a limit") || err == nil {
			t.Errorf("run that %s ends: %v", name, err)
		}
		equal(t, "sleeps", len(sleep.slept), 2)
		equal(t, "summary after "+name, report.Summary, want)
		equal(t, "allocations left", len(contentsOf(t, m)), 2)
	}
}

// Promise 7. A later round tries again what failed at first.
func TestFailuresAreForgottenWhenALaterLookSucceeds(t *testing.T) {
	h, _ := waitingHarness(t)
	second := backendtest.NewMemory("second")
	h.backends = append(h.backends, second.Backend())
	second.OnRequest(func(string) error { return errConnection })
	sleep := (&fakeSleep{}).attach(h)
	sleep.onSleep = func(int) error {
		second.OnRequest(nil)
		return nil
	}
	report := h.run(t)
	equal(t, "statuses", statuses(report), map[string]string{"memory": "ok", "second": "ok"})
	equal(t, "released", report.Summary.Released, 2)
}

// Promise 7. A release that was not finished is not tried again.
func TestUnfinishedReleaseOfAnEarlierLookIsAFailure(t *testing.T) {
	m := backendtest.NewHandled("memory")
	h := newHarness(m.Backend())
	h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	shortenGrace(h, 0)
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	h.addPods(t, m, "live-1", "gone-1", "gone-2")
	m.Fumble()
	(&fakeSleep{}).attach(h)
	report, failures := h.partial(t)
	const why = "released, but a later run has to remove the rest: the handle of sandbox-gone-1: the second write failed"
	equal(t, "failures", failures, []string{"memory: a: 2: " + why})
	equal(t, "released", report.Summary.Released, 2)
	equal(t, "statuses", statuses(report), map[string]string{"memory": "partial: unfinished releases: 1"})
}

// Promise 7. Once the lists are found to lack a pod, no later round releases anything, and the run
// fails with its last one too.
func TestRunThatWaitsOnAfterAListLackedAPodFails(t *testing.T) {
	h, _ := waitingHarness(t)
	shortenGrace(h, time.Minute)
	sleep := (&fakeSleep{}).attach(h)
	missing := showing(app("gone-1").Pod, ip1)
	missing.Created = noon.Add(-24 * time.Hour)
	h.pods.OnCall(func(call string) error {
		switch {
		case call == "list pods":
			h.pods.Remove(missing.Ref)
		case len(sleep.slept) > 0:
			h.pods.Add(missing)
		}
		return nil
	})
	report, failures := h.partial(t)
	equal(t, "rounds", len(sleep.slept)+1, 3)
	equal(t, "released", report.Summary.Released, 0)
	if text := strings.Join(failures, "\n"); !strings.Contains(text, "lists of this API server lack pods") {
		t.Errorf("failures: %s", text)
	}
}

// The timeout is that of a round, not of the waiting.
func TestTimeoutDoesNotCountTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := waitingHarness(t)
		began := time.Now()
		h.change = func(o *reaper.Options) {
			o.Timeout = time.Minute
			o.Now = func() time.Time { return noon.Add(time.Since(began)) }
			o.Sleep = func(ctx context.Context, d time.Duration) error {
				time.Sleep(d)
				return ctx.Err()
			}
		}
		equal(t, "released", h.run(t).Summary.Released, 2)
	})
}

// Promise 7. Limits apply to a whole run, however many rounds it has.
func TestLimitsHoldForAllLooksOfARun(t *testing.T) {
	for name, limit := range map[string]func(*policy.Limits){
		"limits.maxReleases": func(l *policy.Limits) { l.MaxReleases = new(1) },
		"limits.maxFraction": func(l *policy.Limits) { l.MaxFraction, l.MinEntries = new(0.6), new(3) },
	} {
		h, _ := waitingHarness(t)
		shortenGrace(h, 0)
		limit(&h.policy.Limits)
		(&fakeSleep{}).attach(h)
		rep, err := reaper.Run(t.Context(), h.options())
		equal(t, "limit", limitError(t, err).Refusals[0].Limit, name)
		equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"1": report.Kept, "2": report.Released, "3": report.Refused})
	}
}
