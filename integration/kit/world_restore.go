package kit

import (
	"encoding/json"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A RestoreReport is what a restore prints in JSON, as far as tests look at it. It is defined here
// a second time because scripts depend on it.
type RestoreReport struct {
	Kind     string              `json:"kind"`
	Journal  struct{ ID string } `json:"journal"`
	Summary  RestoreSummary      `json:"summary"`
	Entries  []RestoreEntry      `json:"entries"`
	Warnings []string            `json:"warnings"`
}

// A RestoreSummary counts records.
type RestoreSummary struct {
	Records  int `json:"records"`
	Planned  int `json:"planned"`
	Restored int `json:"restored"`
	Present  int `json:"present"`
	Taken    int `json:"taken"`
	Failed   int `json:"failed"`
}

// A RestoreEntry says what became of one record.
type RestoreEntry struct {
	Backend string               `json:"backend"`
	Pool    string               `json:"pool"`
	Key     string               `json:"key"`
	IP      string               `json:"ip"`
	Owner   struct{ Pod string } `json:"owner"`
	Outcome string               `json:"outcome"`
	Error   string               `json:"error"`
}

// Restores restores under ReleaseNow, and must exit with the code.
func (w *World) Restores(code int, args ...string) RestoreReport {
	w.Helper()
	w.Must(w.Memory.Unlock(w.Context()))
	return w.RestoreReportOf(w.Ends(code, w.Starts("restore", ReleaseNow, args...)))
}

// Restore puts back what a run released; none of it may fail.
func (w *World) Restore(id string) RestoreReport {
	w.Helper()
	return w.Restores(reap.ExitDone, "--run="+id)
}

// Journal returns what history prints of the latest run that has a journal.
func (w *World) Journal() string {
	w.Helper()
	return w.Ends(reap.ExitDone, w.Starts("history", ReleaseNow, "--run=latest")).Stdout
}

// RestoreReportOf reads the report of a restore.
func (w *World) RestoreReportOf(result reap.Result) RestoreReport {
	w.Helper()
	var r RestoreReport
	if err := json.Unmarshal([]byte(result.Stdout), &r); err != nil || r.Kind != "RestoreReport" {
		w.Fatalf("no report: %v\n%s%s", err, result.Stdout, result.Stderr)
	}
	return r
}

// Outcomes returns what became of the records, by backend and address, or by backend and key for
// those without an address.
func (r RestoreReport) Outcomes() map[string]string {
	all := map[string]string{}
	for _, e := range r.Entries {
		name := e.IP
		if name == "" {
			name = e.Key
		}
		all[e.Backend+" "+name] = e.Outcome
	}
	return all
}
