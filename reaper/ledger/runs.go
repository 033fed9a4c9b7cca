package ledger

import (
	"cmp"
	"maps"
	"slices"
)

// A Run is how a run or a restore ended, for people: no verdict rests on it. No text has more than
// MaxRunText bytes.
type Run struct {
	ID     string `json:"id"`
	Began  int64  `json:"began,omitzero"` // in seconds since 1970
	By     string `json:"by,omitzero"`    // who started it: see journal.Run
	DryRun bool   `json:"dryRun,omitzero"`

	Selection string `json:"selection,omitzero"` // what it was narrowed to; empty: nothing
	Overrides string `json:"overrides,omitzero"` // the flags that replaced settings of the policy

	// Ended is false for a run that is still running, or was killed. Then the code and the
	// error are those of the run so far.
	Ended    bool   `json:"ended,omitzero"`
	ExitCode int    `json:"exitCode,omitzero"`
	Error    string `json:"error,omitzero"` // why it failed or was refused

	Due      int `json:"due,omitzero"`      // addresses that it planned to free
	Released int `json:"released,omitzero"` // addresses that it freed
	NotBegun int `json:"notBegun,omitzero"` // addresses that stay only because it was interrupted before their releases

	RestoreOf string  `json:"restoreOf,omitzero"` // the run whose journal it put back, if it is a restore
	Restore   Restore `json:"restore,omitzero"`   // the zero value if it is none
}

// A Restore counts the addresses that a restore was to put back, by what became of them.
type Restore struct{ Restored, Present, Taken, Failed int }

const (
	// MaxRuns is how many runs the ledger keeps.
	MaxRuns = 20

	// MaxRunText is the largest size of a text of a run, in bytes. So all runs take less than 20 KiB.
	MaxRunText = 200
)

// results are the words for how runs ended, by the exit codes of the program. Any other code is that of
// a run that failed.
var results = map[int]string{0: "done", 3: "partial", 4: "refused", 130: "interrupted"}

const failed = "failed"

// Results returns all results of runs.
func Results() []string { return append(slices.Sorted(maps.Values(results)), failed) }

// Result says in one word how a run ended.
func (r Run) Result() string { return cmp.Or(results[r.ExitCode], failed) }

// Totals count what runs did since the ledger was made, for people: no verdict rests on them. A run
// counts once, when it is first known to have ended. A run that was killed before that counts nowhere.
type Totals struct {
	Released map[string]uint64 `json:"released,omitempty"` // addresses, by the backend
	Runs     map[string]uint64 `json:"runs,omitempty"`     // by their result
}

// sum returns the sums of two counts of the same things.
func sum(a, b map[string]uint64) map[string]uint64 {
	all := make(map[string]uint64)
	maps.Copy(all, a)
	for name, n := range b {
		all[name] += n
	}
	return all
}

// WithRun returns the ledger with the run, instead of what it has for that run, and without the
// oldest runs beyond MaxRuns. If the run has ended, and had not in the ledger, its totals count it
// and the addresses that it freed, by the backend; they count no restore. So a run whose end is
// written again, because it did not learn that it was written, is not counted again.
func (l Ledger) WithRun(run Run, freed map[string]uint64) Ledger {
	l.Runs = slices.Clone(l.Runs)
	i := slices.IndexFunc(l.Runs, func(r Run) bool { return r.ID == run.ID })
	if run.Ended && run.RestoreOf == "" && (i < 0 || !l.Runs[i].Ended) {
		l.Totals = Totals{sum(l.Totals.Released, freed), sum(l.Totals.Runs, map[string]uint64{run.Result(): 1})}
	}
	if i >= 0 {
		l.Runs[i] = run
		return l
	}
	l.Runs = append(l.Runs, run)
	l.Runs = l.Runs[max(0, len(l.Runs)-MaxRuns):]
	return l
}
