package print

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// An address that two stores hold counts once, in the row that one of them knows.
func TestRankingCountsAddresses(t *testing.T) {
	due, freed := &report.Address{Fate: report.Due}, &report.Address{Fate: report.Released}
	r := report.Report{Leaked: &report.Leaked{}, Entries: []report.Entry{
		{Backend: "overlapping", Address: due},
		{Backend: "whereabouts", Address: due, Owner: ipam.EntryOwner{Node: "n1"}},
		{Backend: "whereabouts", Address: &report.Address{Fate: report.Held}},
		{Backend: "whereabouts", Address: freed, Owner: ipam.EntryOwner{Node: "n1"}},
		{Backend: "calico", Owner: ipam.EntryOwner{Node: "n1"}},
		{Backend: "calico", Address: &report.Address{Fate: report.Due}, Owner: ipam.EntryOwner{Node: "n2"}},
		{Backend: "calico", Address: &report.Address{Fate: report.Due}, Owner: ipam.EntryOwner{Namespace: "n1", Node: "n3"}},
	}}
	nodes := reapertest.Lists{Nodes: []census.Node{{Name: "n2", Since: time.Date(2026, time.March, 1, 11, 0, 0, 0, time.UTC)}, {Name: "n3", Ready: true}}}.Census(t, census.Scope{Nodes: true})
	r.Living = &nodes
	want := []rankedRow{
		{nameless, 1, 0, 0, 1, ""},
		{"n1", 1, 1, 0, 0, "does not exist"},
		{"n2", 1, 1, 0, 0, "is not ready since 2026-03-01T11:00:00Z"},
		{"n3", 1, 1, 0, 0, ""},
	}
	if diff := cmp.Diff(want, rank(r, "nodes").Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for _, row := range rank(r, "namespaces").Rows {
		if row.State != "" {
			t.Errorf("the namespace %s %s", row.Name, row.State)
		}
	}
}

func TestAgesOfLeaks(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(age time.Duration) *time.Time {
		past := now.Add(-age)
		return &past
	}
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name          string
		seen, created *time.Time
		want          string
	}{
		{"neither", nil, nil, "unknown"},
		{"only this run saw it", at(0), nil, "unknown"},
		{"only this run saw it, and it was allocated before", at(0), at(2 * day), "1 to 7 days"},
		{"seen by an earlier run", at(time.Hour), at(40 * day), "1 hour to 1 day"},
		{"young", nil, at(time.Hour - time.Second), "0 to 1 hour"},
		{"of the future", nil, at(-time.Hour), "0 to 1 hour"},
		{"a day", nil, at(day), "1 to 7 days"},
		{"a week", nil, at(7 * day), "7 to 30 days"},
		{"a month", nil, at(30 * day), "over 30 days"},
	} {
		if got := ageOf(report.Entry{FirstSeen: tt.seen, Created: tt.created}, now); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
