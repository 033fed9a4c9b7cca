package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A StoredPart is a part of a journal as its store has it: the part, or the error from
// reading it.
type StoredPart struct {
	Name string // the name of the object or the line, for messages
	Part Part
	Err  error // from DecodePart
}

// maxDamage is the largest number of damaged or missing parts that Assemble names one by one.
const maxDamage = 20

// Assemble puts the parts of a run's journal together. The parts may come in any order.
//
// For each part that is missing, damaged, of another run, or stored twice, the error
// names the part and wraps journal.ErrDamaged. The journal then has the records
// that could be read. If all parts of the last writes are missing, Assemble cannot tell.
func Assemble(runID string, stored []StoredPart) (Journal, error) {
	a := assembly{journal: Journal{Run: Run{ID: runID}}}
	parts := a.unique(a.ofRun(stored))
	for i, s := range parts {
		a.journal.Records = append(a.journal.Records, s.Part.Records...)
		if i == 0 || parts[i-1].Part.Write != s.Part.Write {
			a.journal.Writes = append(a.journal.Writes, 0)
		}
		a.journal.Writes[len(a.journal.Writes)-1] += len(s.Part.Records)
	}
	a.findGaps(parts)
	if more := len(a.damage) - maxDamage; more > 0 {
		a.damage = a.damage[:maxDamage]
		a.report("%d more damaged or missing parts", more)
	}
	return a.journal, errors.Join(a.damage...)
}

// An assembly is a journal being put together.
type assembly struct {
	journal Journal
	damage  []error
}

// report adds damage to the error.
func (a *assembly) report(format string, args ...any) {
	a.damage = append(a.damage, fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...)))
}

// ofRun returns the parts of the run. The first of them describes the run.
func (a *assembly) ofRun(stored []StoredPart) []StoredPart {
	var parts []StoredPart
	for _, s := range stored {
		switch {
		case s.Err != nil:
			a.damage = append(a.damage, fmt.Errorf("%s: %w", s.Name, s.Err))
		case s.Part.Run.ID != a.journal.Run.ID:
			a.report("%s is part of run %q", s.Name, s.Part.Run.ID)
		case len(parts) > 0 && !s.Part.Run.Equal(a.journal.Run):
			a.report("%s describes the run differently than %s", s.Name, parts[0].Name)
		default:
			a.journal.Run = s.Part.Run
			parts = append(parts, s)
		}
	}
	return parts
}

// unique sorts the parts, and returns each of them once. If two different parts claim
// the same place, it returns neither.
func (a *assembly) unique(parts []StoredPart) []StoredPart {
	place := func(s, other StoredPart) int {
		return cmp.Or(cmp.Compare(s.Part.Write, other.Part.Write), cmp.Compare(s.Part.Part, other.Part.Part))
	}
	slices.SortStableFunc(parts, place)
	var once []StoredPart
	for len(parts) > 0 {
		first, n := parts[0], 1
		alike := true
		for ; n < len(parts) && place(first, parts[n]) == 0; n++ {
			a.report("%s and %s are both part %d of write %d", first.Name, parts[n].Name, first.Part.Part, first.Part.Write)
			alike = alike && reflect.DeepEqual(first.Part, parts[n].Part)
		}
		if alike {
			once = append(once, first)
		}
		parts = parts[n:]
	}
	return once
}

// findGaps reports how many parts and writes are missing between the sorted parts.
func (a *assembly) findGaps(parts []StoredPart) {
	have, last := make(map[int]int), make(map[int]int)
	for _, s := range parts {
		write := s.Part.Write
		if last[write] > 0 && last[write] != s.Part.Parts {
			a.report("%s counts %d parts, other parts of write %d count %d", s.Name, s.Part.Parts, write, last[write])
		}
		have[write]++
		last[write] = max(last[write], s.Part.Parts)
	}
	writes := slices.Sorted(maps.Keys(have))
	for _, write := range writes {
		if lost := last[write] - have[write]; lost > 0 {
			a.report("write %d lacks %d of %d parts", write, lost, last[write])
		}
	}
	if n := len(writes); n > 0 && writes[n-1] > n {
		a.report("%d of %d writes are missing", writes[n-1]-n, writes[n-1])
	}
}

// A Source has the journals of runs, in parts.
type Source interface {
	// Where says where the journals are, for messages.
	Where() string

	// List returns the runs that have a journal, the latest first, with the warnings of PastRuns.
	List(ctx context.Context) (runs []PastRun, warnings []string, err error)

	// Parts returns the parts of a run's journal, and none if nothing is stored under
	// exactly this ID.
	Parts(ctx context.Context, run string) ([]StoredPart, error)
}

// maxNamed is the largest number of runs that a message names.
const maxNamed = 10

// Find returns the journal of a run, with the errors of Assemble. The ID may be in any case.
// If the run has no journal, the error wraps ErrNone and names the runs that
// have one.
func Find(ctx context.Context, s Source, runID string) (Journal, error) {
	parts, err := s.Parts(ctx, runID)
	if err != nil {
		return Journal{}, fmt.Errorf("read the journal: %w", err)
	}
	if len(parts) > 0 {
		return Assemble(runID, parts)
	}
	runs, warnings, err := s.List(ctx)
	if err != nil {
		return Journal{}, err
	}
	there := "no run has a journal there"
	var ids []string
	for _, r := range runs {
		if r.ID != runID && strings.EqualFold(r.ID, runID) {
			return Find(ctx, s, r.ID)
		}
		ids = append(ids, r.ID)
	}
	if len(ids) > 0 {
		there = fmt.Sprintf("runs with a journal there: %d, the latest are %s", len(ids), strings.Join(ids[:min(len(ids), printable.MaxNamed)], ", "))
	}
	if len(warnings) > 0 {
		there += "; " + printable.Some(warnings)
	}
	return Journal{}, fmt.Errorf("%w of run %q in %s: %s", ErrNone, runID, s.Where(), there)
}
