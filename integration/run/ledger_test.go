package run_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
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
		{"of a time that cannot be written", seen(func(at int64) int64 { return at + 1e14 }), "a number is cut short or out of range"},
		{"gzip that was cut", func(f *fixture) { f.storeText(memory.Zip(bytes.Repeat([]byte("seen"), 1000))[:20]) }, "the ledger is damaged"},
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
