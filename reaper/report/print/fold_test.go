package print

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// drawReport returns a report with many similar entries and pools.
func drawReport(t *rapid.T) report.Report {
	r := emptyReport()
	outcomes := []report.Fate{report.Kept, report.Planned, report.Released, report.Changed, report.Returned, report.Failed}
	for range rapid.IntRange(0, 12).Draw(t, "groups") {
		e := report.Entry{
			Backend: "calico", Pool: fmt.Sprint("pool-", rapid.IntRange(0, 2).Draw(t, "pool")),
			Owner:   ipam.EntryOwner{Pod: "web", Node: rapid.SampledFrom([]string{"", "n1", "n2", "n3", "n4", "n5"}).Draw(t, "node")},
			Verdict: judge.Verdict(rapid.IntRange(0, 3).Draw(t, "verdict")),
			Reason:  rapid.SampledFrom([]judge.Reason{judge.PodAbsent, judge.NodeUnreachable, judge.OutOfScope}).Draw(t, "reason"),
			Outcome: report.Kept, Note: "x", FirstSeen: &noon,
		}
		if e.Verdict == judge.Orphaned {
			e.Outcome = rapid.SampledFrom(outcomes).Draw(t, "outcome")
		}
		minutes := rapid.IntRange(1, 90).Draw(t, "minutes")
		for range rapid.IntRange(1, 60).Draw(t, "size") {
			i := len(r.Entries)
			later := noon.Add(time.Duration(7*i%minutes) * time.Minute)
			e.Key, e.IP, e.Due = fmt.Sprint(i), fmt.Sprintf("10.0.%d.%d", 7*i%3, 11*i%250), &later
			r.Entries = append(r.Entries, e)
		}
	}
	for i := range rapid.IntRange(0, 60).Draw(t, "pools") {
		p := report.PoolReport{Backend: "calico", Name: fmt.Sprint("pool-", i), AllocatedBefore: 7, AllocatedAfter: 7}
		p.Capacity, p.Used, p.Leaked = big.NewInt(64), 7, max(0, rapid.IntRange(-3, 3).Draw(t, "leaked"))
		r.Pools = append(r.Pools, p)
	}
	return r
}

// The rows and the numbers of the folds add up.
func TestFoldingLosesNoCount(t *testing.T) {
	total := func(t *rapid.T, table table) int {
		n := len(table.rows)
		for _, line := range table.below {
			if !strings.HasPrefix(line, "… ") {
				continue
			}
			folded, err := strconv.Atoi(strings.ReplaceAll(strings.Fields(line)[2], ",", ""))
			if err != nil || folded < 2 || !table.folded {
				t.Fatalf("%q says no number, or is no shorter than its row: %v", line, err)
			}
			n += folded
		}
		return n
	}
	rapid.Check(t, func(t *rapid.T) {
		r := drawReport(t)
		for _, all := range []bool{false, true} {
			if got, want := total(t, entryTable(r, false, all)), len(rowsOf(r.Entries, all)); got != want {
				t.Fatalf("all %t: %d of %d rows", all, got, want)
			}
			if got := total(t, poolTable(r, all)); got != len(r.Pools) {
				t.Fatalf("all %t: %d of %d pools", all, got, len(r.Pools))
			}
		}
		if n := len(entryTable(r, false, true).rows); n != len(r.Entries) {
			t.Fatalf("--all shows %d of %d entries", n, len(r.Entries))
		}
	})
}

func TestAddressesSortAsAddresses(t *testing.T) {
	ips := []string{"", "fd00::10", "10.0.0.10", "fd00::9", "10.0.0.9", "10.0.0.9", "b", "a"}
	want := []string{"a", "b", "10.0.0.9", "10.0.0.10", "fd00::9", "fd00::10"}
	if got := addresses(ips); !slices.Equal(got, want) {
		t.Errorf("addresses = %q, want %q", got, want)
	}
}

// What the run did or would do gets more rows than what it keeps.
func TestFoldsNameReasonAndPlaces(t *testing.T) {
	entries := func(n int, verdict judge.Verdict, reason judge.Reason, node string) (some []report.Entry) {
		for i := range n {
			some = append(some, report.Entry{IP: fmt.Sprintf("10.0.0.%d", i), Pool: "p", Verdict: verdict, Reason: reason, Note: "a tunnel", Owner: ipam.EntryOwner{Node: node}})
		}
		return some
	}
	for name, tt := range map[string]struct {
		entries []report.Entry
		rows    int
		folds   []string
	}{
		"due":          {entries(60, judge.Orphaned, judge.PodAbsent, ""), 50, []string{"… and 10 more due: PodAbsent"}},
		"held":         {entries(60, judge.Held, judge.NodeUnreachable, "n3"), 10, []string{"… and 50 more held: NodeUnreachable (50 on n3)"}},
		"one more":     {entries(11, judge.Held, judge.NodeUnreachable, "n3"), 11, nil},
		"out of scope": {entries(11, judge.Held, judge.OutOfScope, "n3"), 0, []string{"… and 11 held: OutOfScope (11 on n3)"}},
		"tunnels":      {entries(11, judge.Held, judge.NotPodOwned, "n3"), 0, []string{"… and 11 not a pod's: NotPodOwned (11 for a tunnel)"}},
		"few":          {entries(10, judge.Held, judge.OutOfScope, "n3"), 10, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := entryTable(report.Report{Entries: tt.entries}, false, false)
			if len(got.rows) != tt.rows || !slices.Equal(got.below, tt.folds) {
				t.Errorf("%d rows and %q, want %d and %q", len(got.rows), got.below, tt.rows, tt.folds)
			}
		})
	}
}
