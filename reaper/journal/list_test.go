package journal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// history shows which runs can be undone, and reports many broken parts of a store in one line.
func TestPastRunsCountEachAllocationOnce(t *testing.T) {
	var all []journal.Summary
	for i, data := range [][]byte{
		encode(t, 2, record("1", `{}`), record("2", `{}`))[0],
		encode(t, 1, record("1", `{}`))[0],
	} {
		part, err := journal.DecodePart(data)
		all = append(all, journal.Summarize(journaled.ID, noon, journal.StoredPart{Name: fmt.Sprint(i), Part: part, Err: err}))
	}
	for i := range 12 {
		all = append(all, journal.Summarize("run", noon, journal.StoredPart{Name: fmt.Sprint("broken-", i), Err: errors.New("junk")}))
	}
	runs, warnings := journal.PastRuns(all)
	equal(t, "runs", runs, []journal.PastRun{{Run: journaled, Recorded: 2, Addresses: 1, Pools: []journal.PoolRecord{
		{Backend: "whereabouts", Pool: "kube-system/10.0.0.0-24", Recorded: 2},
	}}})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "broken-4 (junk) and 7 more") {
		t.Errorf("the warnings are %q, want one that names five parts", warnings)
	}
	_, warnings = journal.PastRuns([]journal.Summary{journal.Summarize("another", noon, journal.StoredPart{Name: "p", Part: journal.Part{Run: journaled}})})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "a part of run") {
		t.Errorf("the warnings are %q, want one of a part of another run", warnings)
	}
}

// An entry of a pool and its overlapping reservation are one address, and the same IP in two networks
// is two. An empty handle has none.
func TestPastRunCountsAddresses(t *testing.T) {
	at := func(backend, pool, key, ip string) ipam.Record {
		r := record(key, `{}`)
		r.Backend, r.Pool, r.IP = backend, pool, ip
		return r
	}
	past := journal.PastOf(journal.Journal{Run: journaled, Records: []ipam.Record{
		at("whereabouts", "lan", "1", "10.0.0.1"), at("overlapping", "10.0.0.1", "10.0.0.1", "10.0.0.1"),
		at("whereabouts", "wan", "1", "10.0.0.1"), at("whereabouts", "lan", "2", "10.0.0.2"), at("calico", "empty handles", "h", ""),
	}})
	equal(t, "allocations", past.Recorded, 5)
	equal(t, "addresses", past.Addresses, 3)
}
