package report

import (
	"strings"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A History lists runs that have a journal, or whose end the ledger has, the latest first. Its
// JSON form is a contract that users script against.
type History struct {
	APIVersion     string            `json:"apiVersion"`
	Kind           string            `json:"kind"`
	Cluster        string            `json:"cluster"` // the API server's address
	StateNamespace string            `json:"stateNamespace"`
	Node           string            `json:"node,omitempty"`     // see RunInfo
	StateDir       string            `json:"stateDir,omitempty"` // see RunInfo
	CronJobs                         // none on a node
	Runs           []journal.PastRun `json:"runs"`

	// Warnings are sentences about what could not be read.
	Warnings []string `json:"warnings,omitempty"`
}

// AddJournal adds the run of a journal with its allocations, and the journal. If parts of it
// could not be read, damage says why: it becomes a warning, and AddJournal returns a
// *PartialError.
func (h *History) AddJournal(j journal.Journal, damage error) error {
	run := journal.PastOf(j)
	h.Runs = append(h.Runs, run)
	if damage == nil {
		return nil
	}
	for line := range strings.Lines(damage.Error()) {
		text := printable.Shorten(strings.TrimSuffix(line, "\n"), printable.MaxText)
		run.Journal.Damage = append(run.Journal.Damage, text)
		h.Warnings = append(h.Warnings, "some allocations are missing: "+text)
	}
	return Partial([]error{damage})
}

// NewHistory returns a history without runs.
func NewHistory(cluster, namespace string) History {
	return History{
		APIVersion: policy.APIVersion, Kind: "RunHistory", Cluster: cluster, StateNamespace: namespace, Runs: []journal.PastRun{},
	}
}
