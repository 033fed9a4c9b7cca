package ledger

import (
	"encoding/binary"
	"math"
	"slices"
)

// A Run is how a run ended, for people: no verdict rests on it.
type Run struct {
	ID     string
	Began  int64 // in seconds since 1970
	DryRun bool

	// Ended is false for a run that is still running, or was killed. Then the code and the
	// error are those of the run so far.
	Ended    bool
	ExitCode int
	Error    string // why it failed or was refused, in at most MaxRunError bytes

	Due      int // allocations that it planned to release
	Released int // allocations
}

const (
	// MaxRuns is how many runs the ledger keeps.
	MaxRuns = 20

	// MaxRunError is the largest size of the error of a run, in bytes. So all runs take less
	// than 6 KiB.
	MaxRunError = 200
)

// WithRun returns the ledger with the run, instead of what it has for that run, and without the
// oldest runs beyond MaxRuns.
func (l Ledger) WithRun(run Run) Ledger {
	l.Runs = slices.Clone(l.Runs)
	if i := slices.IndexFunc(l.Runs, func(r Run) bool { return r.ID == run.ID }); i >= 0 {
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

// appendRuns appends the number of runs, and each of them: its ID, a number for each of its
// beginning, flags, exit code, and figures, and its error. A text is its length and its bytes.
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
		data = appendText(data, r.ID)
		for _, n := range [...]uint64{uint64(r.Began), flags, uint64(r.ExitCode), uint64(r.Due), uint64(r.Released)} {
			data = binary.AppendUvarint(data, n)
		}
		data = appendText(data, r.Error)
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
		run := Run{ID: r.text(), Began: int64(r.number(lastSecond))}
		flags := r.number(allFlags)
		run.DryRun, run.Ended = flags&dryRunFlag != 0, flags&endedFlag != 0
		run.ExitCode = int(r.number(math.MaxUint8))
		run.Due, run.Released = int(r.number(math.MaxInt)), int(r.number(math.MaxInt))
		run.Error = r.text()
		runs = append(runs, run)
	}
	return runs
}

// text reads a text.
func (r *ledgerReader) text() string { return string(r.bytes(r.number(uint64(len(r.rest))))) }
