package reaper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Record is an entry as its store had it before it was released.
type Record struct {
	Backend string     `json:"backend"`
	Pool    string     `json:"pool"`
	Key     string     `json:"key"`
	IP      string     `json:"ip,omitzero"` // empty where it has none
	Owner   EntryOwner `json:"owner"`

	// Stored is what Recorder.Record returned.
	Stored json.RawMessage `json:"stored"`
}

// String names the entry for people.
func (r Record) String() string {
	return fmt.Sprintf("the record of backend %q, pool %q, key %q", r.Backend, r.Pool, r.Key)
}

// A JournalRun says which run a journal is of.
type JournalRun struct {
	ID        string    `json:"id"`
	StartedAt time.Time `json:"startedAt"`
	Version   string    `json:"version"` // of the program
	Cluster   string    `json:"cluster"` // the API server's address
}

// Equal reports whether both are the same run.
func (r JournalRun) Equal(other JournalRun) bool {
	same := r.StartedAt.Equal(other.StartedAt)
	r.StartedAt, other.StartedAt = time.Time{}, time.Time{}
	return same && r == other
}

// A Journal is what one run wrote down before it released it. Not all of it has
// been released: the run may have ended, or found an owner, in between.
type Journal struct {
	Run     JournalRun
	Records []Record // in the order in which they were written
	Writes  []int    // how many of them the run wrote at a time; nil where that was once
}

// writeOf returns the number of the write of a record, from 0.
func (j Journal) writeOf(record int) int {
	for n, size := range j.Writes {
		if record < size {
			return n
		}
		record -= size
	}
	return len(j.Writes)
}

// Journals keeps what one run is about to release. Its methods are for one
// goroutine.
type Journals interface {
	// Write stores the records of a run, all or none that a reader would take for
	// all. Nothing of them is released before. A run may call it several times,
	// each time with more of them.
	Write(ctx context.Context, run JournalRun, records []Record) error

	// Prune removes the journals of the oldest runs that are more than have to be
	// kept, but never that of this run or of one that began later. It does nothing
	// before a Write. Its error does not keep anything from being released.
	Prune(ctx context.Context) error
}

var (
	// ErrJournalDamaged says that a journal, or a part of it, could not be
	// understood. Nothing of that part can be restored.
	ErrJournalDamaged = errors.New("the journal is damaged")

	// ErrNoJournal says that there is no journal of the run that was asked for.
	ErrNoJournal = errors.New("no journal")
)
