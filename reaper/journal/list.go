package journal

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"
)

// A Summary is what is kept of a part to list the runs: the hashes of its allocations,
// because two parts may have the same one.
type Summary struct {
	name   string
	at     time.Time
	run    Run
	hashes map[poolKey][]uint64
	err    error // why the part could not be read
}

// A poolKey names a pool of a backend.
type poolKey struct{ backend, pool string }

var seed = maphash.MakeSeed()

// Summarize returns the summary of a part that was stored for a run at that time.
func Summarize(run string, at time.Time, s StoredPart) Summary {
	sum := Summary{name: s.Name, at: at, run: s.Part.Run, hashes: make(map[poolKey][]uint64), err: s.Err}
	if sum.err == nil && sum.run.ID != run {
		sum.err = fmt.Errorf("it has a part of run %q", sum.run.ID)
	}
	for _, r := range s.Part.Records {
		key := poolKey{r.Backend, r.Pool}
		sum.hashes[key] = append(sum.hashes[key], maphash.String(seed, r.Key))
	}
	return sum
}

// PastRuns returns the runs of all parts, the latest first. The warnings name the parts that
// could not be read.
func PastRuns(parts []Summary) (runs []PastRun, warnings []string) {
	slices.SortStableFunc(parts, func(a, b Summary) int { return a.at.Compare(b.at) })
	merged := make(map[string]Summary)
	var order, unread []string
	for _, p := range parts {
		first, known := merged[p.run.ID]
		switch {
		case p.err != nil:
			unread = append(unread, fmt.Sprintf("%s (%v)", p.name, p.err))
		case !known:
			merged[p.run.ID] = p
			order = append(order, p.run.ID)
		default:
			for key, hashes := range p.hashes {
				first.hashes[key] = append(first.hashes[key], hashes...)
			}
		}
	}
	for _, id := range slices.Backward(order) {
		runs = append(runs, merged[id].past())
	}
	if len(unread) > 0 {
		warnings = []string{"parts of journals could not be read, and are not counted: " + Some(unread)}
	}
	return runs, warnings
}

// past returns the run of the parts that were merged.
func (s Summary) past() PastRun {
	pools := []PoolRecord{}
	for key, hashes := range s.hashes {
		slices.Sort(hashes)
		pools = append(pools, PoolRecord{Backend: key.backend, Pool: key.pool, Recorded: len(slices.Compact(hashes))})
	}
	return NewPastRun(s.run, pools)
}

// Some names the first of some things, and how many more there are.
func Some(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
