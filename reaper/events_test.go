package reaper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A fakeEvents is a reaper.EventRecorder that keeps its announcements.
type fakeEvents struct {
	err       error
	announced []announcement
}

// An announcement has the arguments of one call of Announce.
type announcement struct {
	report   report.Report
	objects  map[ipam.PoolRef]ipam.Object
	ctx      error
	deadline bool
}

// attach makes the runs of the harness announce to it.
func (events *fakeEvents) attach(h *harness) *fakeEvents {
	h.also(func(o *reaper.Options) { o.Events = events })
	return events
}

func (events *fakeEvents) Announce(ctx context.Context, r report.Report, objects map[ipam.PoolRef]ipam.Object) error {
	_, deadline := ctx.Deadline()
	events.announced = append(events.announced, announcement{r, objects, ctx.Err(), deadline})
	return events.err
}

// poolObject is the object of a pool.
var poolObject = ipam.Object{APIVersion: "v1", Kind: "Pool", Namespace: "kube-system", Name: "pool", UID: "uid"}

// Promise 7. The announcement has the report and the releases of all rounds.
func TestRunIsAnnouncedOnceWithAllItsLooks(t *testing.T) {
	s := fixedStore{poolOf(allocations(2)...)}
	s[0].Object = &poolObject
	harness := newHarness(s)
	harness.pods.Add(census.Pod{Ref: other})
	harness.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	harness.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"app-0"}}, GracePeriod: &policy.Duration{}}}
	events := (&fakeEvents{}).attach(harness)
	sleep := (&fakeSleep{}).attach(harness)
	sleep.onSleep = func(int) error {
		s[0].Allocations = s[0].Allocations[1:]
		return nil
	}
	report := harness.run(t)
	equal(t, "announcements", len(events.announced), 1)
	equal(t, "report", events.announced[0].report, report)
	e := report.Entries[0]
	equal(t, "objects", events.announced[0].objects, map[ipam.PoolRef]ipam.Object{{Backend: e.Backend, Name: e.Pool}: poolObject})
	equal(t, "released", report.Summary.Released, 2)
	equal(t, "keys", []string{report.Entries[0].Key, report.Entries[1].Key}, []string{"0", "1"})
	equal(t, "it has a time to end", events.announced[0].deadline, true)
}

// Promise 7. An interrupted run announces its releases.
func TestInterruptedRunIsAnnounced(t *testing.T) {
	harness, _ := waitingHarness(t)
	events := (&fakeEvents{}).attach(harness)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reaper.Run(ctx, harness.options()); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v, want it cancelled", err)
	}
	equal(t, "announcements", len(events.announced), 1)
	equal(t, "its context", events.announced[0].ctx, nil)
}

func TestEventThatWasNotWrittenIsAWarning(t *testing.T) {
	h, _ := waitingHarness(t)
	(&fakeEvents{err: errForbidden}).attach(h)
	equal(t, "warnings", h.run(t).Warnings, []string{"some events were not written: " + errForbidden.Error()})
}

func TestFailedReleaseIsNotAnnounced(t *testing.T) {
	harness := newHarness(wrapped{fixedStore{poolOf(allocations(1)...)}, answering(errors.New("no"))})
	harness.pods.Add(census.Pod{Ref: other})
	events := (&fakeEvents{}).attach(harness)
	harness.partial(t)
	equal(t, "released", len(events.announced[0].objects), 0)
	equal(t, "failed", events.announced[0].report.Summary.Failed, 1)
}
