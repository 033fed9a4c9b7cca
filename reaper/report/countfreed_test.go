package report_test

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 7. What the ledger says that a run frees is what a report says that it would free.
func TestCountFreedCountsAsAReport(t *testing.T) {
	kinds := []judge.Ruling{
		{Verdict: judge.InUse, Reason: judge.PodPresent}, {Verdict: judge.Held, Reason: judge.NotPodOwned}, {Verdict: judge.Held, Reason: judge.OwnerUnknown},
		{Verdict: judge.Held, Reason: judge.RuleHold, Ownerless: true}, {Verdict: judge.Orphaned, Reason: judge.PodAbsent, Ownerless: true},
	}
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		draw := func() *ipam.Allocation {
			n++
			network := rapid.SampledFrom([]string{"lan", "wan"}).Draw(t, "network")
			a := &ipam.Allocation{Backend: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "backend"), Pool: network, Network: network, Key: fmt.Sprint(n)}
			if last := rapid.IntRange(0, 3).Draw(t, "address"); last > 0 {
				a.IP = netip.AddrFrom4([4]byte{10, 0, 0, byte(last)})
			}
			return a
		}
		some := report.Results{
			Run: report.RunInfo{DryRun: true}, Inventory: ipam.Inventory{Listings: []ipam.Listing{{Backend: "a"}, {Backend: "b"}}},
			Outcomes: make(map[int]report.Done), HasTimes: func(*judge.Decision) bool { return false },
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "decisions") {
			d := judge.Decision{Allocation: draw(), Ruling: rapid.SampledFrom(kinds).Draw(t, "kind")}
			if d.Ownerless && rapid.Bool().Draw(t, "gone") {
				some.Outcomes[i] = report.Done{Outcome: report.Planned}
			}
			some.Verdicts.Decisions = append(some.Verdicts.Decisions, d)
		}
		for range rapid.IntRange(0, 2).Draw(t, "in use") {
			some.Verdicts.InUse = append(some.Verdicts.InUse, judge.Live{Allocation: draw()})
		}
		for range rapid.IntRange(0, 2).Draw(t, "earlier") {
			some.Earlier = append(some.Earlier, report.EntryOf(&judge.Decision{Allocation: draw(), Ruling: kinds[4]}, report.Done{Outcome: report.Released}))
		}
		gone := func(i int) bool { return some.Outcomes[i].Outcome != report.Unknown }
		if got, want := report.CountFreed(some.Verdicts, some.Earlier, gone)[0], report.Make(some).Freed(); got != want {
			t.Fatalf("%d addresses, and the report has %d", got, want)
		}
	})
}
