package report

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
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

// RestoreCounts are numbers of records, or of addresses. Each is counted in exactly one of the outcomes.
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
	Outcome Fate            `json:"outcome"`
	Error   string          `json:"error,omitempty"` // why it is not back, or stays alone: "half back"
	Note    string          `json:"note,omitempty"`  // what speaks against it, and why it goes back all the same
}

// MakeRestore returns the report of a restore, and counts its entries. undone is the run that it undoes.
func MakeRestore(run RunInfo, undone journal.Run, entries []RestoreEntry, warnings []string) RestoreReport {
	r := RestoreReport{APIVersion: policy.APIVersion, Kind: "RestoreReport", Run: run, Journal: undone, Entries: entries, Warnings: warnings}
	r.Summary.Records = len(entries)
	for _, e := range r.Entries {
		*r.Summary.of(e.Outcome)++
	}
	return r
}

// of returns the figure of an outcome.
func (c *RestoreCounts) of(o Fate) *int {
	switch o {
	case Restorable:
		return &c.Planned
	case Restored:
		return &c.Restored
	case AlreadyThere:
		return &c.Present
	case Taken:
		return &c.Taken
	default:
		return &c.Failed
	}
}

// Addresses counts the addresses of pods in the entries, each by the outcome of its records that is
// furthest from being there.
func (r RestoreReport) Addresses() (counts RestoreCounts) {
	type record struct {
		address ipam.Address // a record has no network, and no pod has one IP twice
		outcome Fate
	}
	records := make([]record, len(r.Entries))
	for i, e := range r.Entries {
		ip, _ := netip.ParseAddr(e.IP) // not valid if it has none
		records[i] = record{ipam.Address{Network: e.Owner.PodRef().String(), IP: ip}, e.Outcome}
	}
	for address := range ipam.Addresses(records, func(r record) ipam.Address { return r.address }) {
		furthest := slices.MaxFunc(address, func(a, b record) int { return cmp.Compare(a.outcome, b.outcome) })
		counts.Records++
		*counts.of(furthest.outcome)++
	}
	return counts
}
