package undo_test

import (
	"encoding/json"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A report is what a restoration says in JSON, as far as the tests look at it. It is
// written down here a second time because scripts depend on it.
type report struct {
	Kind     string              `json:"kind"`
	Journal  struct{ ID string } `json:"journal"`
	Summary  counts              `json:"summary"`
	Entries  []entry             `json:"entries"`
	Warnings []string            `json:"warnings"`
}

type counts struct {
	Records  int `json:"records"`
	Planned  int `json:"planned"`
	Restored int `json:"restored"`
	Present  int `json:"present"`
	Taken    int `json:"taken"`
	Failed   int `json:"failed"`
}

type entry struct {
	Backend string               `json:"backend"`
	Pool    string               `json:"pool"`
	Key     string               `json:"key"`
	IP      string               `json:"ip"`
	Owner   struct{ Pod string } `json:"owner"`
	Outcome string               `json:"outcome"`
	Error   string               `json:"error"`
}

// restores restores under the policy, and must exit with the code.
func (s *scene) restores(code int, args ...string) report {
	s.Helper()
	s.unlock()
	return s.reportOf(s.wait(s.start("restore", releaseNow, args...), code))
}

// restore puts back what a run released, of which nothing may fail.
func (s *scene) restore(id string) report {
	s.Helper()
	return s.restores(reap.ExitDone, "--run="+id)
}

// reportOf reads the report of a restoration.
func (s *scene) reportOf(result reap.Result) report {
	s.Helper()
	var r report
	if err := json.Unmarshal([]byte(result.Stdout), &r); err != nil || r.Kind != "RestoreReport" {
		s.Fatalf("no report: %v\n%s%s", err, result.Stdout, result.Stderr)
	}
	return r
}

// outcomes are what became of the records that have an address, by backend and
// address, and of the others by backend and key.
func (r report) outcomes() map[string]string {
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

// wantOutcomes fails the test unless a restoration answered so for its records.
func (s *scene) wantOutcomes(r report, want map[string]string) {
	s.Helper()
	if diff := cmp.Diff(want, r.outcomes()); diff != "" {
		s.Errorf("outcomes (-want +got):\n%s", diff)
	}
}
