package journal

import (
	"cmp"
	"slices"
	"time"
)

// The most that Retention.For keeps: a run every minute that releases would otherwise leave
// 10,080 journals in a week. The bytes are those of the stored data. The ResourceQuota of the
// manifests has room for the objects and for the journal of another run.
const (
	maxJournalObjects = 1000
	maxJournalBytes   = 64 << 20
)

// A Retention says which journals Prune keeps. It keeps a journal that satisfies either
// field. The zero Retention keeps the journal of the current run only.
type Retention struct {
	Runs int           // the journals of that many runs, the current one included
	For  time.Duration // younger journals, up to maxJournalObjects and maxJournalBytes
}

// A Stored is what a Retention looks at in a stored journal.
type Stored struct {
	Run     string    // the ID
	Began   time.Time // by the clock that all journals of the store share
	Objects int       // ConfigMaps or files
	Size    int       // in bytes, as stored
}

// Latest orders journals, the latest first. An ID begins with its time.
func Latest(a, b Stored) int {
	return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(b.Run, a.Run))
}

// Expired returns the IDs of the runs whose journals are not kept, the oldest first. The age of a
// journal is the time from its beginning to that of the current run, current. Expired returns false
// if that has none.
func (r Retention) Expired(runs []Stored, current string) (expired []string, ok bool) {
	runs = slices.SortedFunc(slices.Values(runs), Latest)
	own := slices.IndexFunc(runs, func(s Stored) bool { return s.Run == current })
	if own < 0 {
		return nil, false
	}
	objects, bytes := 0, 0
	for i, run := range runs {
		objects, bytes = objects+run.Objects, bytes+run.Size
		young := runs[own].Began.Sub(run.Began) < r.For
		if i <= own || i < r.Runs || young && objects <= maxJournalObjects && bytes <= maxJournalBytes {
			continue
		}
		expired = append(expired, run.Run)
	}
	slices.Reverse(expired)
	return expired, true
}
