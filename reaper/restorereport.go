package reaper

import (
	"net/netip"
	"slices"

	"github.com/hashicorp/go-multierror"

	"github.com/ip-reaper/ip-reaper/policy"
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
	Journal    JournalRun     `json:"journal"` // the run that is undone
	Summary    RestoreCounts  `json:"summary"`
	Entries    []RestoreEntry `json:"entries"`

	// Warnings are sentences about the restore as a whole.
	Warnings []string `json:"warnings,omitempty"`

	records []Record // of the entries, by the same indices
	writes  []int    // the journal's writes that had the records
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
	Backend string         `json:"backend"`
	Pool    string         `json:"pool"`
	Key     string         `json:"key"`
	IP      string         `json:"ip"` // empty if the record has no address
	Owner   EntryOwner     `json:"owner"`
	Outcome RestoreOutcome `json:"outcome"`
	Error   string         `json:"error,omitempty"`
}

// newRestoreReport returns a report with an entry for each record to put back. If a run
// tried twice to release an allocation, the journal has its record twice, and the report
// once.
func newRestoreReport(o RestoreOptions) RestoreReport {
	r := RestoreReport{
		APIVersion: policy.APIVersion,
		Kind:       "RestoreReport",
		Run: RunInfo{
			ID: o.ID, StartedAt: o.Now().UTC(), DryRun: o.DryRun, Version: o.Version, Cluster: o.Address, Node: o.Node, StateDir: o.StateDir,
		},
		Journal: o.Journal.Run,
		Entries: []RestoreEntry{},
	}
	seen := make(map[[4]string]int)
	for n, rec := range o.Journal.Records {
		if ip, err := netip.ParseAddr(rec.IP); len(o.Only) > 0 && (err != nil || !slices.Contains(o.Only, ip)) {
			continue
		}
		id := [4]string{rec.Backend, rec.Pool, rec.Key, string(rec.Stored)}
		if first, ok := seen[id]; ok {
			r.writes[first] = o.Journal.writeOf(n)
			continue
		}
		seen[id] = len(r.records)
		r.records, r.writes = append(r.records, rec), append(r.writes, o.Journal.writeOf(n))
		r.Entries = append(r.Entries, RestoreEntry{
			Backend: rec.Backend, Pool: rec.Pool, Key: rec.Key, IP: rec.IP, Owner: rec.Owner, Outcome: NotRestored,
		})
	}
	return r
}

// tally counts the entries.
func (r *RestoreReport) tally() {
	r.Summary = RestoreCounts{Records: len(r.Entries)}
	counts := map[RestoreOutcome]*int{
		Restorable: &r.Summary.Planned, Restored: &r.Summary.Restored, AlreadyThere: &r.Summary.Present,
		Taken: &r.Summary.Taken, NotRestored: &r.Summary.Failed,
	}
	for _, e := range r.Entries {
		*counts[e.Outcome]++
	}
}

// partial returns failures as a *PartialError, or nil.
func partial(failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	return &PartialError{multierror.Append(nil, failures...)}
}
