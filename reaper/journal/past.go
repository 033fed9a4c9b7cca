package journal

import (
	"cmp"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A PastRun is a run with the allocations that its journal has. A journal is written before
// the releases, so it may have an allocation that the run did not release in the end: its
// owner came back, or the run was stopped.
type PastRun struct {
	Run
	Recorded int          `json:"recorded"` // allocations
	Pools    []PoolRecord `json:"pools"`    // the pool with most of them first

	// Result is how the run ended; nil if the ledger no longer has it. A run that has one may
	// have no journal.
	Result *Result `json:"result,omitempty"`

	// Entries are the allocations, and Journal has the journal itself, if a single run was asked
	// for.
	Entries []RecordedEntry `json:"entries,omitempty"`
	Journal *Printed        `json:"journal,omitempty"`
}

// A Result is how a run ended, as the ledger has it.
type Result struct {
	DryRun   bool   `json:"dryRun"`
	ExitCode *int   `json:"exitCode,omitempty"` // nil if still running, or killed
	Due      int    `json:"due"`                // allocations that it planned to release
	Released *int   `json:"released,omitempty"` // allocations; nil if ExitCode is
	Error    string `json:"error,omitempty"`    // why it failed or was refused, shortened
}

// A PoolRecord is how many allocations of one pool a journal has.
type PoolRecord struct {
	Backend  string `json:"backend"`
	Pool     string `json:"pool"`
	Recorded int    `json:"recorded"`
}

// A RecordedEntry is one allocation of a journal.
type RecordedEntry struct {
	Backend string          `json:"backend"`
	Pool    string          `json:"pool"`
	Key     string          `json:"key"`
	IP      string          `json:"ip"` // empty if it has no address
	Owner   ipam.EntryOwner `json:"owner"`
}

// NewPastRun returns a run with what its journal has of each pool. The pools may come in any
// order.
func NewPastRun(run Run, pools []PoolRecord) PastRun {
	past := PastRun{Run: run, Pools: pools}
	for _, p := range pools {
		past.Recorded += p.Recorded
	}
	slices.SortFunc(past.Pools, func(a, b PoolRecord) int {
		return cmp.Or(cmp.Compare(b.Recorded, a.Recorded), cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Pool, b.Pool))
	})
	return past
}

// PastOf returns the run of a journal with its allocations, and the journal. An allocation that the
// journal has twice is among the allocations once.
func PastOf(j Journal) PastRun {
	entries := []RecordedEntry{}
	seen := make(map[[3]string]bool)
	counts := make(map[[2]string]int)
	for _, r := range j.Records {
		id := [3]string{r.Backend, r.Pool, r.Key}
		if seen[id] {
			continue
		}
		seen[id] = true
		counts[[2]string{r.Backend, r.Pool}]++
		entries = append(entries, RecordedEntry{Backend: r.Backend, Pool: r.Pool, Key: r.Key, IP: r.IP, Owner: r.Owner})
	}
	pools := []PoolRecord{}
	for name, n := range counts {
		pools = append(pools, PoolRecord{name[0], name[1], n})
	}
	past := NewPastRun(j.Run, pools)
	past.Entries, past.Journal = entries, printed(j)
	return past
}
