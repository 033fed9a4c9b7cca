package journal

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"
)

// A Summary is what is kept of a part to list the runs: hashes of its allocations, because
// two parts may have the same one.
type Summary struct {
	Name string
	At   time.Time
	Run  Run
	Err  error // why the part could not be read

	hashes map[poolKey][]uint64
}

// A poolKey names a pool of a backend.
type poolKey struct{ backend, pool string }

var seed = maphash.MakeSeed()

// Summarize returns the summary of a part that was stored for a run at that time.
func Summarize(run string, at time.Time, s StoredPart) Summary {
	sum := Summary{Name: s.Name, At: at, Run: s.Part.Run, Err: s.Err, hashes: make(map[poolKey][]uint64)}
	if sum.Err == nil && sum.Run.ID != run {
		sum.Err = fmt.Errorf("it has a part of run %q", sum.Run.ID)
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
	slices.SortStableFunc(parts, func(a, b Summary) int { return a.At.Compare(b.At) })
	merged := make(map[string]Summary)
	var order, unread []string
	for _, p := range parts {
		first, known := merged[p.Run.ID]
		switch {
		case p.Err != nil:
			unread = append(unread, fmt.Sprintf("%s (%v)", p.Name, p.Err))
		case !known:
			merged[p.Run.ID] = p
			order = append(order, p.Run.ID)
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

// past returns the run of the merged parts.
func (s Summary) past() PastRun {
	pools := []PoolRecord{}
	for key, hashes := range s.hashes {
		slices.Sort(hashes)
		pools = append(pools, PoolRecord{Backend: key.backend, Pool: key.pool, Recorded: len(slices.Compact(hashes))})
	}
	return NewPastRun(s.Run, pools)
}

// Some names the first of some things, and how many more there are.
func Some(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
