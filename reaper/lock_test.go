package reaper_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A fakeLock is a reaper.Lock that notes its calls.
type fakeLock struct {
	err    error
	calls  []string
	lapsed func() error // nil: it never does
}

// attach makes the runs of the harness take the lock.
func (lock *fakeLock) attach(h *harness) *fakeLock {
	h.also(func(o *reaper.Options) { o.Lock = lock })
	return lock
}

func (lock *fakeLock) Acquire(_ context.Context, holder string) (func(), error) {
	lock.calls = append(lock.calls, "acquire "+holder)
	if lock.err != nil {
		return nil, lock.err
	}
	return func() { lock.calls = append(lock.calls, "release") }, nil
}

func (lock *fakeLock) Lapsed() error {
	if lock.lapsed == nil {
		return nil
	}
	return lock.lapsed()
}

// heldLock returns a lock that another run has.
func heldLock() *fakeLock {
	return &fakeLock{err: &reaper.LockedError{Holder: "run-0", Since: noon, Lock: "lease kube-system/ip-reaper"}}
}

// Promise 7.
func TestRunThatFindsTheLockTakenListsNothing(t *testing.T) {
	harness, m := waitingHarness(t)
	harness.policy.GracePeriod = &policy.Duration{}
	lock := heldLock().attach(harness)
	asked := requests(m)
	harness.ledgers.onLoad = func() error { t.Error("the ledger was read"); return nil }
	rep, err := reaper.Run(t.Context(), harness.options())
	var locked *reaper.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("run: %v, want a LockedError", err)
	}
	equal(t, "message", err.Error(), "another run is in progress: run-0, since 2026-03-01T12:00:00Z (lease kube-system/ip-reaper); nothing was done")
	equal(t, "requests of the store", *asked, nil)
	equal(t, "calls of the cluster", harness.pods.Calls(), nil)
	equal(t, "lock", lock.calls, []string{"acquire run-1"})
	equal(t, "report", rep, report.Report{
		APIVersion: "ip-reaper/v1alpha1", Kind: "ReapReport",
		Run:      report.RunInfo{ID: "run-1", StartedAt: noon, FinishedAt: noon, Origin: report.Origin{Version: "v1", Cluster: "https://cluster"}, LedgerUnread: true},
		Backends: []report.BackendReport{}, Layout: report.Layout{Networks: []report.NetworkReport{}, Pools: []report.PoolReport{}}, Entries: []report.Entry{}, Findings: []report.Finding{},
	})
}

// Without the lock, each second look asks whether others have changed the ledger.
func TestRunGoesOnIfTheLockCannotBeTaken(t *testing.T) {
	h, _ := waitingHarness(t)
	h.policy.GracePeriod = &policy.Duration{}
	lock := (&fakeLock{err: errForbidden}).attach(h)
	report := h.run(t)
	equal(t, "released", report.Summary.Released, 2)
	equal(t, "warnings", report.Warnings, []string{"the lock could not be taken, so another run may go on beside this one: " + errForbidden.Error()})
	equal(t, "lock", lock.calls, []string{"acquire run-1"})
}
