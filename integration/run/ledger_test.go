package run_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// If the ledger was damaged between two runs, the second keeps what the first suspected:
// its grace period begins anew, and the run says why if it cannot read the ledger. The
// ledger that it writes is a good one (promises 2 and 8).
func TestEveryDamageOfTheLedger(t *testing.T) {
	text := func(data string) func(*fixture) {
		return func(f *fixture) { f.storeText(memory.Zip([]byte(data))) }
	}
	seen := func(at func(int64) int64) func(*fixture) {
		return func(f *fixture) {
			l := f.ledger()
			for id := range l.Seen {
				l.Seen[id] = at(l.Seen[id])
			}
			f.store(l)
		}
	}
	const century = 100 * 365 * 24 * int64(time.Hour/time.Second)
	type damage struct {
		name   string
		become func(*fixture)
		says   string // in a warning; empty where there is nothing to warn of
	}
	for _, tt := range kit.SampleBy([]damage{
		{"deleted", func(f *fixture) { f.must(f.memory.ForgetLedger(f.Context())) }, ""},
		{"from a later time", seen(func(at int64) int64 { return at + 3600 }), ""},
		{"from the next century", seen(func(at int64) int64 { return at + century }), ""},
		{"of a time that cannot be written", seen(func(at int64) int64 { return at + 1e14 }), "a number is cut short or out of range"},
		{"of a time before all times", seen(func(int64) int64 { return -1 }), "a number is cut short or out of range"},
		{"empty", func(f *fixture) { f.storeText(nil) }, ""},
		{"no gzip", func(f *fixture) { f.storeText([]byte("{}")) }, "the ledger is damaged"},
		{"gzip that was cut", func(f *fixture) { f.storeText(memory.Zip(bytes.Repeat([]byte("seen"), 1000))[:20]) }, "the ledger is damaged"},
		{"no ledger", text("seen: none"), "the ledger is damaged"},
		{"too large", text(strings.Repeat(" ", 9<<20)), "the ledger is damaged: it has more than"},
	}, func(d damage) string { return d.says }) {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.leak("web-0")
			f.reap(reap.ExitDone, patient)
			f.pass(time.Hour)
			tt.become(f)
			report := f.reap(reap.ExitDone, patient).Report
			f.wantSaid(report, decisions{"web-0": suspected})
			switch {
			case tt.says == "" && len(report.Warnings) > 0:
				t.Errorf("warnings %v, want none", report.Warnings)
			case tt.says != "" && len(report.Warnings) != 1:
				t.Errorf("warnings %v, want one", report.Warnings)
			case tt.says != "":
				f.wantText(report.Warnings[0], tt.says)
				f.wantText(report.Warnings[0], "all allocations count as first seen now")
			}
			f.pass(time.Hour)
			f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{"web-0": released})
		})
	}
}

// A first sight that lies in the far past is one: a cluster may have been without a
// reaper for years. A second look still stands between it and a release.
func TestLedgerFromTheFarPastEndsTheGracePeriod(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	f.live("web-1", cluster.OnNode("worker-1"))
	f.reap(reap.ExitDone, patient)
	l := f.ledger()
	for id := range l.Seen {
		l.Seen[id] = 0
	}
	f.store(l)
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{"web-0": released, "web-1": present})
}

// A ledger that may be whole, and cannot be read, may say that a node is cut off or
// that half of the pods are gone: nothing is released, and the ledger stays as it is
// (promise 2).
func TestLedgerThatCannotBeReadReleasesNothing(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	f.reap(reap.ExitDone, patient)
	f.pass(time.Hour)
	before := f.versions()
	f.toReaper.Before(proxy.On("get configmaps"), proxy.Always(proxy.Forbidden()))
	got := f.reap(reap.ExitPartial, atOnce)
	f.wantSaid(got.Report, decisions{"web-0": failed})
	f.wantText(strings.Join(got.Report.Warnings, "\n"), "load the ledger: injected: forbidden")
	f.wantUnwritten(before)
	f.toReaper.Reset()
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{"web-0": released})
}
