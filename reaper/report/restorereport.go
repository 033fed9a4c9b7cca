package report

import (
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// A RestoreOutcome is the result of a restore for one record.
type RestoreOutcome string

// The outcomes of a restore.
const (
	Restorable   RestoreOutcome = "planned"  // in a dry run: its place is free, and a real one would put it back
	Restored     RestoreOutcome = "restored" // the store holds the allocation again
	AlreadyThere RestoreOutcome = "present"  // the store held it already; nothing was written
	Taken        RestoreOutcome = "taken"    // its place or its address has another owner; nothing was written
	NotRestored  RestoreOutcome = "failed"   // it is not known to be back
)

// A RestoreReport has the outcome of every record of a journal. Its JSON form is a
// contract that users script against.
type RestoreReport struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Run        RunInfo        `json:"run"`
	Journal    journal.Run    `json:"journal"` // the run that is undone
	Summary    RestoreCounts  `json:"summary"`
	Entries    []RestoreEntry `json:"entries"`

	// Warnings are sentences about the restore as a whole.
	Warnings []string `json:"warnings,omitempty"`
}

// RestoreCounts are numbers of records. Every record is counted in exactly one of the
// outcomes.
type RestoreCounts struct {
	Records  int `json:"records"`
	Planned  int `json:"planned"` // in a dry run
	Restored int `json:"restored"`
	Present  int `json:"present"`
	Taken    int `json:"taken"`
	Failed   int `json:"failed"`
}

// A RestoreEntry is one record with its outcome.
type RestoreEntry struct {
	Backend string          `json:"backend"`
	Pool    string          `json:"pool"`
	Key     string          `json:"key"`
	IP      string          `json:"ip"` // empty if the record has no address
	Owner   ipam.EntryOwner `json:"owner"`
	Outcome RestoreOutcome  `json:"outcome"`
	Error   string          `json:"error,omitempty"`
}

// NewRestoreReport returns a report without entries.
func NewRestoreReport(run RunInfo, of journal.Run) RestoreReport {
	return RestoreReport{APIVersion: policy.APIVersion, Kind: "RestoreReport", Run: run, Journal: of, Entries: []RestoreEntry{}}
}

// SetRecords makes one entry for each record of a journal that is to be put back.
func (r *RestoreReport) SetRecords(records []ipam.Record) {
	r.Entries = make([]RestoreEntry, len(records))
	for i, rec := range records {
		r.Entries[i] = RestoreEntry{
			Backend: rec.Backend, Pool: rec.Pool, Key: rec.Key, IP: rec.IP, Owner: rec.Owner, Outcome: NotRestored,
		}
	}
}

// Tally counts the entries.
func (r *RestoreReport) Tally() {
	r.Summary = RestoreCounts{Records: len(r.Entries)}
	counts := map[RestoreOutcome]*int{
		Restorable: &r.Summary.Planned, Restored: &r.Summary.Restored, AlreadyThere: &r.Summary.Present,
		Taken: &r.Summary.Taken, NotRestored: &r.Summary.Failed,
	}
	for _, e := range r.Entries {
		*counts[e.Outcome]++
	}
}
