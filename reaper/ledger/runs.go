package ledger

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// A Run is how a run or a restore ended, for people: no verdict rests on it. No text has more than
// MaxRunText bytes.
type Run struct {
	ID     string
	Began  int64  // in seconds since 1970
	By     string // who started it: see journal.Run
	DryRun bool

	Selection string // what it was narrowed to; empty: nothing
	Overrides string // the flags that replaced settings of the policy

	// Ended is false for a run that is still running, or was killed. Then the code and the
	// error are those of the run so far.
	Ended    bool
	ExitCode int
	Error    string // why it failed or was refused

	Due      int // addresses that it planned to free
	Released int // addresses that it freed
	NotBegun int // addresses that stay only because it was interrupted before their releases

	RestoreOf string  // the run whose journal it put back, if it is a restore
	Restore   Restore // the zero value if it is none
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
	Released map[string]uint64 // addresses, by the backend
	Runs     map[string]uint64 // by their result
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

// The bits of a run's flags.
const (
	dryRunFlag = 1 << iota
	endedFlag
	allFlags = dryRunFlag | endedFlag
)

// numbers are the figures of a run, in the order of the stored form.
func (r *Run) numbers() [7]*int {
	return [...]*int{&r.Due, &r.Released, &r.NotBegun, &r.Restore.Restored, &r.Restore.Present, &r.Restore.Taken, &r.Restore.Failed}
}

// texts are the texts of a run, in the order of the stored form.
func (r *Run) texts() [6]*string {
	return [...]*string{&r.ID, &r.By, &r.Selection, &r.Overrides, &r.Error, &r.RestoreOf}
}

// appendRuns appends the number of runs, and each of them: its texts, its beginning, flags,
// exit code, and figures. A text is its length and its bytes.
func appendRuns(data []byte, runs []Run) []byte {
	data = binary.AppendUvarint(data, uint64(len(runs)))
	for _, r := range runs {
		flags := uint64(0)
		if r.DryRun {
			flags |= dryRunFlag
		}
		if r.Ended {
			flags |= endedFlag
		}
		for _, text := range r.texts() {
			data = appendText(data, *text)
		}
		for _, n := range [...]uint64{uint64(r.Began), flags, uint64(r.ExitCode)} {
			data = binary.AppendUvarint(data, n)
		}
		for _, n := range r.numbers() {
			data = binary.AppendUvarint(data, uint64(*n))
		}
	}
	return data
}

// appendText appends a text.
func appendText(data []byte, text string) []byte {
	return append(binary.AppendUvarint(data, uint64(len(text))), text...)
}

// runs reads what appendRuns appends.
func (r *ledgerReader) runs() []Run {
	var runs []Run
	for range r.number(MaxRuns) {
		var run Run
		for _, text := range run.texts() {
			*text = r.text()
		}
		run.Began = int64(r.number(lastSecond))
		flags := r.number(allFlags)
		run.DryRun, run.Ended = flags&dryRunFlag != 0, flags&endedFlag != 0
		run.ExitCode = int(r.number(math.MaxUint8))
		for _, n := range run.numbers() {
			*n = int(r.number(math.MaxInt))
		}
		runs = append(runs, run)
	}
	return runs
}

// text reads a text.
func (r *ledgerReader) text() string { return string(r.bytes(r.number(uint64(len(r.rest))))) }
