package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A PastRun is a run with the allocations that its journal has. A journal is written before
// the releases, so it may have an allocation that the run did not release in the end: its
// owner came back, or the run was stopped.
type PastRun struct {
	Run
	Recorded  int          `json:"recorded"`  // allocations
	Addresses int          `json:"addresses"` // those of the allocations
	Pools     []PoolRecord `json:"pools"`     // the pool with most of them first

	// Result is how the run ended; nil if the ledger no longer has it. A run that has one may
	// have no journal.
	Result *Result `json:"result,omitempty"`

	// Restores are the restores of its journal that the ledger has, the latest first.
	Restores []RestoreResult `json:"restores,omitempty"`

	// Entries are the allocations, and Journal has the journal itself, if a single run was asked
	// for.
	Entries []RecordedEntry `json:"entries,omitempty"`
	Journal *Printed        `json:"journal,omitempty"`
}

// A Result is how a run ended, as the ledger has it.
type Result struct {
	DryRun    bool   `json:"dryRun"`
	Selection string `json:"selection,omitempty"` // what it was narrowed to, in words
	Overrides string `json:"overrides,omitempty"` // the flags that replaced settings of the policy
	ExitCode  *int   `json:"exitCode,omitempty"`  // nil if still running, or killed
	Due       int    `json:"due"`                 // addresses that it planned to free
	Released  *int   `json:"released,omitempty"`  // addresses that it freed; nil if ExitCode is
	NotBegun  int    `json:"notBegun,omitzero"`   // addresses that stay since it was interrupted before
	Error     string `json:"error,omitempty"`     // why it failed or was refused, shortened

	Restore *RestoreResult `json:"restore,omitempty"` // of a restore, which releases nothing
}

// A RestoreResult counts what became of the addresses of a journal in one restore.
type RestoreResult struct {
	ID       string `json:"id"` // of the restore
	Of       string `json:"of"` // the run whose journal it put back
	Restored int    `json:"restored"`
	Present  int    `json:"present"`
	Taken    int    `json:"taken"`
	Failed   int    `json:"failed"`
}

// A PoolRecord is how many allocations of one pool a journal has.
type PoolRecord struct {
	Backend  string `json:"backend"`
	Pool     string `json:"pool"`
	Recorded int    `json:"recorded"`

	// Elsewhere is set for what is no pool to people: an overlapping-range reservation whose address another
	// pool of the journal has.
	Elsewhere bool `json:"-"`
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
	for _, r := range j.Records {
		id := [3]string{r.Backend, r.Pool, r.Key}
		if seen[id] {
			continue
		}
		seen[id] = true
		entries = append(entries, RecordedEntry{Backend: r.Backend, Pool: r.Pool, Key: r.Key, IP: r.IP, Owner: r.Owner})
	}
	past := Summarize(j.Run.ID, time.Time{}, StoredPart{Part: Part{Run: j.Run, Records: j.Records}}).past()
	past.Entries, past.Journal = entries, printed(j)
	return past
}

// A Printed is a journal as history prints it in JSON, from which Read reads it again.
type Printed struct {
	Parts  []Part   `json:"parts"`            // one for each write, of any size
	Damage []string `json:"damage,omitempty"` // why other parts could not be read
}

// printed returns a journal to print.
func printed(j Journal) *Printed {
	p := &Printed{Parts: []Part{}}
	for left := j.Records; len(left) > 0; {
		size := len(left)
		if n := len(p.Parts); n < len(j.Writes) {
			size = j.Writes[n]
		}
		p.Parts = append(p.Parts, Part{Run: j.Run, Write: len(p.Parts) + 1, Part: 1, Parts: 1, Records: left[:size]})
		left = left[size:]
	}
	return p
}

// maxPrinted is the largest size of a printed journal, in bytes. It is held in memory.
const maxPrinted = 1 << 30

// Read reads the journal in the history of one run, as printed in JSON. The name is for messages.
// It returns the errors of Assemble, and an *ipam.InputError if there is no journal to read.
func Read(name string, text io.Reader) (Journal, error) {
	data, err := io.ReadAll(io.LimitReader(text, maxPrinted+1))
	if err != nil {
		return Journal{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxPrinted {
		return Journal{}, ipam.BadInput(fmt.Errorf("%s has more than %d MiB", name, maxPrinted>>20), "restore the run from its state, with --run")
	}
	var history struct {
		Runs []struct {
			ID      string `json:"id"`
			Journal struct {
				Parts  []json.RawMessage `json:"parts"`
				Damage []string          `json:"damage"`
			} `json:"journal"`
		} `json:"runs"`
	}
	const hint = "give what history --run ID -o json has printed"
	if err := decodeJSON(data, &history); err != nil {
		return Journal{}, ipam.BadInput(fmt.Errorf("%s: %w", name, err), hint)
	}
	if len(history.Runs) != 1 || !IsRunID(history.Runs[0].ID) {
		return Journal{}, ipam.BadInput(fmt.Errorf("%s: it is not the history of one run", name), hint)
	}
	run := history.Runs[0]
	var stored []StoredPart
	for i, data := range run.Journal.Parts {
		part, err := decodePart(data)
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		stored = append(stored, StoredPart{Name: fmt.Sprintf("%s, part %d", name, i+1), Part: part, Err: err})
	}
	for _, said := range run.Journal.Damage {
		stored = append(stored, StoredPart{Name: name, Err: fmt.Errorf("%w; history said: %s", ErrDamaged, said)})
	}
	if len(stored) == 0 {
		return Journal{}, ipam.BadInput(fmt.Errorf("%s: %w of run %s", name, ErrNone, run.ID), hint)
	}
	return Assemble(run.ID, stored)
}
