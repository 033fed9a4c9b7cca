package reaper_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// A latch is a reaper.Lock that notes what is done with it.
type latch struct {
	err   error
	calls []string
}

// on has the runs of the world take the lock.
func (l *latch) on(w *world) *latch {
	change := w.change
	w.change = func(o *reaper.Options) {
		if change != nil {
			change(o)
		}
		o.Lock = l
	}
	return l
}

func (l *latch) Acquire(_ context.Context, holder string) (func(), error) {
	l.calls = append(l.calls, "acquire "+holder)
	if l.err != nil {
		return nil, l.err
	}
	return func() { l.calls = append(l.calls, "release") }, nil
}

// taken is what a latch says that somebody else has.
func taken() *latch {
	return &latch{err: &reaper.LockedError{Holder: "run-0", Since: noon, Lock: "lease kube-system/ip-reaper"}}
}

// Promise 7.
func TestRunThatFindsTheLockTakenAsksNobody(t *testing.T) {
	w, m := patient(t)
	w.policy.GracePeriod = &policy.Duration{}
	l, h := taken().on(w), (&eventRecorder{}).of(w)
	asked := requests(m)
	w.notes.onLoad = func() error { t.Error("the ledger was read"); return nil }
	report, err := reaper.Run(t.Context(), w.options())
	var locked *reaper.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("run: %v, want a LockedError", err)
	}
	equal(t, "message", err.Error(), "run-0 has been running since 2026-03-01T12:00:00Z (lease kube-system/ip-reaper); nothing was done")
	equal(t, "requests of the store", *asked, nil)
	equal(t, "calls of the cluster", w.pods.Calls(), nil)
	equal(t, "lock", l.calls, []string{"acquire run-1"})
	equal(t, "announcements", len(h.told), 0)
	equal(t, "report", report, reaper.Report{
		APIVersion: "ip-reaper/v1alpha1", Kind: "ReapReport",
		Run:      reaper.RunInfo{ID: "run-1", StartedAt: noon, FinishedAt: noon, Version: "v1", Cluster: "https://cluster"},
		Backends: []reaper.BackendReport{}, Pools: []reaper.PoolReport{}, Entries: []reaper.Entry{},
	})
}

// Nothing that is safe rests on the lock.
func TestRunGoesOnWhereTheLockCannotBeHad(t *testing.T) {
	w, _ := patient(t)
	w.policy.GracePeriod = &policy.Duration{}
	l := (&latch{err: forbidden}).on(w)
	report := w.run(t)
	equal(t, "released", report.Summary.Released, 2)
	equal(t, "warnings", report.Warnings, []string{"the lock could not be taken, so another run may go on at the same time: " + forbidden.Error()})
	equal(t, "lock", l.calls, []string{"acquire run-1"})
}

// Promise 5.
func TestDryRunTakesNoLock(t *testing.T) {
	w, _ := patient(t)
	w.policy.DryRun = policy.Default().DryRun
	l := taken().on(w)
	w.run(t)
	equal(t, "lock", l.calls, nil)
}

func TestLockIsGivenBackOnceHoweverTheRunEnds(t *testing.T) {
	for name, change := range map[string]func(*world){
		"well": func(*world) {},
		"with a failed census": func(w *world) {
			w.pods.OnCall(func(string) error { return forbidden })
		},
		"with a refusal": func(w *world) { w.pods.Remove(app("live-1").Pod) },
		"in part":        func(w *world) { w.notes.onSave = func() error { return forbidden } },
		"without a journal": func(w *world) {
			w.journal.OnWrite(func() error { return forbidden })
		},
	} {
		w, _ := patient(t)
		w.policy.GracePeriod = &policy.Duration{}
		l := (&latch{}).on(w)
		change(w)
		_, _ = reaper.Run(t.Context(), w.options())
		equal(t, "lock after a run that ends "+name, l.calls, []string{"acquire run-1", "release"})
	}
}

// One lock from before the first listing to the end of the last look.
func TestLockIsHeldWhileTheRunWaits(t *testing.T) {
	w, m := patient(t)
	sooner(w, 0)
	l := (&latch{}).on(w)
	m.OnRequest(func(request string) error {
		l.calls = append(l.calls, request)
		return nil
	})
	b := (&bed{}).in(w)
	b.dream = func(int) error {
		l.calls = append(l.calls, "sleep")
		return nil
	}
	w.run(t)
	equal(t, "order", l.calls, []string{
		"acquire run-1", "list", "record", "release a", "sleep", "list", "record", "release a", "release",
	})
}

// A mistake of the program's is not hidden, and the lock expires by itself.
func TestPanicIsNotHidden(t *testing.T) {
	w, m := patient(t)
	(&latch{}).on(w)
	m.OnRequest(func(string) error { panic("a mistake") })
	defer func() {
		if got := recover(); got != "a mistake" {
			t.Errorf("recovered %v, want the panic", got)
		}
	}()
	_, _ = reaper.Run(t.Context(), w.options())
}
