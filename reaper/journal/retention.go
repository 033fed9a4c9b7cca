package journal

import (
	"slices"
	"time"
)

// The most that Retention.For keeps: a run every minute that releases would otherwise leave
// 10,080 journals in a week. The bytes are those of the stored data.
const (
	maxJournals     = 1000
	maxJournalBytes = 64 << 20
)

// A Retention says which journals Prune keeps. It keeps a journal that satisfies either
// field. The zero Retention keeps the journal of the current run only.
type Retention struct {
	Runs int           // the journals of that many runs, the current one included
	For  time.Duration // younger journals, up to maxJournals and maxJournalBytes
}

// A Stored is what a Retention looks at in a stored journal.
type Stored struct {
	Began time.Time // by the clock that all journals of the store share
	Size  int       // in bytes, as stored
}

// Expired returns the indices of the journals that are not kept, the oldest first. runs has
// the latest first, and the current run at index own. The age of a journal is the time from
// its beginning to that of the current one.
func (r Retention) Expired(runs []Stored, own int) []int {
	var expired []int
	bytes := 0
	for i, run := range runs {
		bytes += run.Size
		young := runs[own].Began.Sub(run.Began) < r.For
		if i <= own || i < r.Runs || young && i < maxJournals && bytes <= maxJournalBytes {
			continue
		}
		expired = append(expired, i)
	}
	slices.Reverse(expired)
	return expired
}
