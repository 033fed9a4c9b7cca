package journal

import (
	"context"
	"fmt"
	"strings"
)

// maxNamed is the largest number of runs, or of parts, that a message names.
const maxNamed = 10

// A Source has the journals of runs, in parts.
type Source interface {
	// Place says where the journals are, for messages.
	Place() string

	// List returns the runs that have a journal, the latest first, with the warnings of PastRuns.
	List(ctx context.Context) (runs []PastRun, warnings []string, err error)

	// Parts returns the parts of a run's journal, and none if nothing is stored under
	// exactly this ID.
	Parts(ctx context.Context, run string) ([]StoredPart, error)
}

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
		there = fmt.Sprintf("runs with a journal there: %d, the latest are %s", len(ids), strings.Join(ids[:min(len(ids), maxNamed)], ", "))
	}
	if len(warnings) > 0 {
		there += "; " + Some(warnings)
	}
	return Journal{}, fmt.Errorf("%w of run %q in %s: %s", ErrNone, runID, s.Place(), there)
}
