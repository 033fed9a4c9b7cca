package journal

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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

	// By says who started the run: the pod, or the user of the kubeconfig. It is empty in
	// journals of earlier versions. It is not verified: the audit log of the API server has
	// the identity.
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
