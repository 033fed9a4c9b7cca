package reaper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// A event recorder is a reaper.EventRecorder that notes what it is told.
type eventRecorder struct {
	err  error
	told []announcement
}

// An announcement is what a event recorder was told at one time.
type announcement struct {
	report   reaper.Report
	released []reaper.Release
	ctx      error
	deadline bool
}

// of has the runs of the world announced.
func (h *eventRecorder) of(w *world) *eventRecorder {
	change := w.change
	w.change = func(o *reaper.Options) {
		if change != nil {
			change(o)
		}
		o.Events = h
	}
	return h
}

func (h *eventRecorder) Announce(ctx context.Context, r reaper.Report, released []reaper.Release) error {
	_, deadline := ctx.Deadline()
	h.told = append(h.told, announcement{r, released, ctx.Err(), deadline})
	return h.err
}

// poolObject is the object of the pools of tests.
var poolObject = reaper.Object{APIVersion: "v1", Kind: "Pool", Namespace: "kube-system", Name: "pool", UID: "uid"}

// Promise 7. It is told what the report says, of all looks.
func TestEventRecorderIsToldOnce(t *testing.T) {
	s := fixedStore{poolOf(entries(2)...)}
	s[0].Object = poolObject
	w := newWorld(s)
	w.pods.Add(reaper.Pod{Ref: other})
	w.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	w.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"app-0"}}, GracePeriod: &policy.Duration{}}}
	h := (&eventRecorder{}).of(w)
	b := (&bed{}).in(w)
	b.dream = func(int) error {
		s[0].Allocations = s[0].Allocations[1:]
		return nil
	}
	report := w.run(t)
	equal(t, "announcements", len(h.told), 1)
	equal(t, "report", h.told[0].report, report)
	equal(t, "released", h.told[0].released, []reaper.Release{{Object: poolObject, Entry: report.Entries[0]}, {Object: poolObject, Entry: report.Entries[1]}})
	equal(t, "keys", []string{report.Entries[0].Key, report.Entries[1].Key}, []string{"0", "1"})
	equal(t, "it has a time to end", h.told[0].deadline, true)
}

func TestEventRecorderIsToldOfNoReleaseThatFailed(t *testing.T) {
	w := newWorld(wrapped{fixedStore{poolOf(entries(1)...)}, answering(errors.New("no"))})
	w.pods.Add(reaper.Pod{Ref: other})
	h := (&eventRecorder{}).of(w)
	w.partial(t)
	equal(t, "released", len(h.told[0].released), 0)
	equal(t, "failed", h.told[0].report.Summary.Failed, 1)
}

// An operator wants to see a refusal, too.
func TestEventRecorderIsToldOfRunsThatEndEarly(t *testing.T) {
	for name, change := range map[string]func(*world){
		"a refusal":       func(w *world) { w.pods.Remove(app("live-1").Pod) },
		"a failed census": func(w *world) { w.pods.OnCall(func(string) error { return forbidden }) },
	} {
		w, _ := patient(t)
		w.policy.GracePeriod = &policy.Duration{}
		h := (&eventRecorder{}).of(w)
		change(w)
		if _, err := reaper.Run(t.Context(), w.options()); err == nil {
			t.Errorf("run that ends with %s: no error", name)
		}
		equal(t, "announcements of "+name, len(h.told), 1)
	}
}

// Promise 7. An interrupted run tells what it did.
func TestEventRecorderIsToldOfAnInterruptedRun(t *testing.T) {
	w, _ := patient(t)
	h := (&eventRecorder{}).of(w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reaper.Run(ctx, w.options()); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v, want it cancelled", err)
	}
	equal(t, "announcements", len(h.told), 1)
	equal(t, "its context", h.told[0].ctx, nil)
}

// Promise 5.
func TestDryRunIsNotAnnounced(t *testing.T) {
	w, _ := patient(t)
	w.policy.DryRun = policy.Default().DryRun
	h := (&eventRecorder{}).of(w)
	w.run(t)
	equal(t, "announcements", len(h.told), 0)
}

func TestEventThatWasNotWrittenIsAWarning(t *testing.T) {
	w, _ := patient(t)
	(&eventRecorder{err: forbidden}).of(w)
	equal(t, "warnings", w.run(t).Warnings, []string{"not every event was written: " + forbidden.Error()})
}
