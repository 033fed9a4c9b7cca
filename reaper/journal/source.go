package journal

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// maxNamed is the largest number of runs, or of parts, that a message names.
const maxNamed = 10

// A Source has the journals of runs, in parts.
type Source interface {
	// Place says where the journals are, for messages.
	Place() string

	// Runs returns the IDs of the runs that have a journal, the latest first.
	Runs(ctx context.Context) ([]string, error)

	// Parts returns the parts of a run's journal, and none if nothing is stored under
	// exactly this ID.
	Parts(ctx context.Context, run string) ([]StoredPart, error)
}

// Find returns the journal of a run, with the errors of Assemble. The ID may be in any case.
// If the run has no journal, the error wraps journal.ErrNone and names the runs that
// have one.
func Find(ctx context.Context, s Source, runID string) (Journal, error) {
	parts, err := s.Parts(ctx, runID)
	if err != nil {
		return Journal{}, fmt.Errorf("read the journal: %w", err)
	}
	if len(parts) > 0 {
		return Assemble(runID, parts)
	}
	runs, err := s.Runs(ctx)
	if err != nil {
		return Journal{}, fmt.Errorf("list the journals: %w", err)
	}
	alike := func(id string) bool { return id != runID && strings.EqualFold(id, runID) }
	if i := slices.IndexFunc(runs, alike); i >= 0 {
		return Find(ctx, s, runs[i])
	}
	there := "no run has a journal there"
	if len(runs) > 0 {
		there = fmt.Sprintf("runs with a journal there: %d, the latest are %s", len(runs), strings.Join(runs[:min(len(runs), maxNamed)], ", "))
	}
	return Journal{}, fmt.Errorf("%w of run %q in %s: %s", ErrNone, runID, s.Place(), there)
}
