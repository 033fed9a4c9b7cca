package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// history counts the addresses that a restore put back, as it counts those that a run released.
func TestRestoreCountsAddresses(t *testing.T) {
	at := func(pod, ip string, outcome report.Fate) report.RestoreEntry {
		return report.RestoreEntry{IP: ip, Owner: ipam.EntryOwner{Pod: pod}, Outcome: outcome}
	}
	got := report.RestoreReport{Entries: []report.RestoreEntry{
		at("one", "10.0.0.1", report.Restored), at("one", "10.0.0.1", report.AlreadyThere),
		at("two", "10.0.0.1", report.Taken), // in another network
		at("two", "10.0.0.2", report.NotRestored), at("two", "10.0.0.2", report.Restored),
		at("two", "10.0.0.3", report.AlreadyThere), at("three", "", report.NotRestored),
	}}.Addresses()
	if diff := cmp.Diff(report.RestoreCounts{Records: 4, Restored: 1, Present: 1, Taken: 1, Failed: 1}, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}
