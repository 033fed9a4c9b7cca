package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A Run identifies the run that wrote a journal.
type Run struct {
	ID        string    `json:"id"`
	StartedAt time.Time `json:"startedAt"`
	Version   string    `json:"version"` // of the program
	Cluster   string    `json:"cluster"` // the API server's address, or node and its name

	// ClusterUID is the UID of the namespace kube-system, which no other cluster has but one that
	// was made from a copy of its etcd; empty if it could not be read.
	ClusterUID string `json:"clusterUID,omitempty"`

	// By says who started the run: the pod, or the user of the kubeconfig and, if it impersonates,
	// as whom it acts. It is empty in journals of earlier versions. It is not verified: the audit log
	// of the API server has the identity.
	By string `json:"by,omitempty"`
}

// Equal reports whether both are the same run.
func (r Run) Equal(other Run) bool {
	same := r.StartedAt.Equal(other.StartedAt)
	r.StartedAt, other.StartedAt = time.Time{}, time.Time{}
	return same && r == other
}

// A Journal has the records of one run, which the run wrote before its first release.
// Some of them may never have been released: the run may have ended before, or the
// second look found an owner.
type Journal struct {
	Run     Run
	Records []ipam.Record // in the order in which they were written
	Writes  []int         // the number of records in each write; nil if there was one write
}

// WriteOf returns the index of the write that had a record, from 0.
func (j Journal) WriteOf(record int) int {
	for n, size := range j.Writes {
		if record < size {
			return n
		}
		record -= size
	}
	return len(j.Writes)
}

// Store stores the journals of runs. Its methods are for one goroutine.
type Store interface {
	// Write stores records of a run, before any of them is released. If it fails, a
	// reader can tell that the journal is not whole. A run may call it several times,
	// each time with further records.
	//
	// If it cannot store some of the records, such as one that is too large, it
	// writes nothing and returns an *UnfitError. A Write of the others may succeed.
	Write(ctx context.Context, run Run, records []ipam.Record) error

	// Prune removes the journals of the oldest runs beyond the number to keep. It
	// never removes that of this run or of a later one. It does nothing before a
	// Write. Its error stops no release.
	Prune(ctx context.Context) error
}

// An UnfitError says which records a journal cannot store. None of the records of that
// Write was written.
type UnfitError struct {
	Records map[int]error // why, by the index of the record
}

// Error returns the reasons in the order of the records.
func (e *UnfitError) Error() string {
	var reasons []string
	for _, i := range slices.Sorted(maps.Keys(e.Records)) {
		reasons = append(reasons, e.Records[i].Error())
	}
	return strings.Join(reasons, "; ")
}

var (
	// ErrDamaged says that a journal, or a part of it, could not be decoded.
	// The records of that part cannot be restored.
	ErrDamaged = errors.New("the journal is damaged")

	// ErrNone says that no journal of the run exists.
	ErrNone = errors.New("no journal")
)

// A Summary is what is kept of a part to list the runs: hashes of its allocations, because
// two parts may have the same one.
type Summary struct {
	Name string
	At   time.Time
	Run  Run
	Err  error // why the part could not be read

	hashes map[ipam.PoolRef][]place
}

// A place has the hashes of the key and of the address of an allocation; no address is 0.
type place struct{ key, ip uint64 }

// itself is the key of an allocation that has its stored object to itself, such as an overlapping-range
// reservation.
const itself = 0

var seed = maphash.MakeSeed()

// Summarize returns the summary of a part that was stored for a run at that time.
func Summarize(run string, at time.Time, s StoredPart) Summary {
	sum := Summary{Name: s.Name, At: at, Run: s.Part.Run, Err: s.Err, hashes: make(map[ipam.PoolRef][]place)}
	if sum.Err == nil && sum.Run.ID != run {
		sum.Err = fmt.Errorf("it has a part of run %q", sum.Run.ID)
	}
	for _, r := range s.Part.Records {
		pool := ipam.PoolRef{Backend: r.Backend, Name: r.Pool}
		at := place{key: maphash.String(seed, r.Key)}
		if strings.HasSuffix(r.Pool, "/"+r.Key) {
			at.key = itself
		}
		if r.IP != "" {
			at.ip = maphash.String(seed, r.IP)
		}
		sum.hashes[pool] = append(sum.hashes[pool], at)
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
			for pool, hashes := range p.hashes {
				first.hashes[pool] = append(first.hashes[pool], hashes...)
			}
		}
	}
	for _, id := range slices.Backward(order) {
		runs = append(runs, merged[id].past())
	}
	if len(unread) > 0 {
		warnings = []string{"parts of journals could not be read, and are not counted: " + printable.Some(unread)}
	}
	return runs, warnings
}

// past returns the run of the merged parts. Two pools of one backend that have an IP are of different
// networks, so these are two addresses; two backends may have the same one, such as Whereabouts' pools
// and its overlapping reservations.
func (s Summary) past() PastRun {
	type holding struct {
		backend string
		ip      uint64
	}
	pools, times, most := []PoolRecord{}, make(map[holding]int), make(map[uint64]int)
	for pool, places := range s.hashes {
		slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.ip, b.ip), cmp.Compare(a.key, b.key)) })
		s.hashes[pool] = slices.Compact(places)
		pools = append(pools, PoolRecord{Backend: pool.Backend, Pool: pool.Name, Recorded: len(s.hashes[pool])})
	}
	past := NewPastRun(s.Run, pools)
	for _, alone := range []bool{false, true} {
		for i := range past.Pools {
			pool := &past.Pools[i]
			places := s.hashes[ipam.PoolRef{Backend: pool.Backend, Name: pool.Pool}]
			if (len(places) == 1 && places[0].key == itself) != alone {
				continue
			}
			before := past.Addresses
			for _, at := range slices.CompactFunc(places, func(a, b place) bool { return a.ip == b.ip }) {
				if of := (holding{pool.Backend, at.ip}); at.ip != 0 {
					if times[of]++; times[of] > most[at.ip] {
						most[at.ip]++
						past.Addresses++
					}
				}
			}
			pool.Elsewhere = alone && past.Addresses == before
		}
	}
	return past
}

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
