package upgrade_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A report is that of a run, with the times of its entries.
type report struct {
	Run      reap.Run
	Summary  reap.Summary
	Entries  []entry
	Warnings []string
}

type entry struct {
	reap.Entry
	FirstSeen, Due *time.Time
}

// reportOf reads what a run has printed.
func reportOf(t testing.TB, result reap.Result) (r report) {
	t.Helper()
	if err := json.Unmarshal([]byte(result.Stdout), &r); err != nil {
		t.Fatalf("no report: %v\n%s%s", err, result.Stdout, result.Stderr)
	}
	return r
}

// place names an allocation.
func (e entry) place() string { return e.Backend + " " + e.Pool + " " + e.Key }

// where returns the allocations of a kind, by place.
func (r report) where(want func(entry) bool) map[string]entry {
	some := map[string]entry{}
	for _, e := range r.Entries {
		if want(e) {
			some[e.place()] = e
		}
	}
	return some
}

// The allocations that a test is about: of pods and sandboxes that are gone. Others, such as
// that of a sandbox that a newer one has replaced, wait for some minutes whatever the policy
// says.
func absent(e entry) bool    { return e.Reason == "PodAbsent" || e.Reason == "SandboxAbsent" }
func suspected(e entry) bool { return e.Decision == "suspected" && absent(e) }
func released(e entry) bool  { return e.Outcome == "released" && absent(e) }
func planned(e entry) bool   { return e.Outcome == "planned" && absent(e) }
func restored(e entry) bool  { return e.Reason == "Restored" }

// A history is what the command prints, as far as scripts rely on it.
type history struct {
	Runs     []json.RawMessage `json:"runs"`
	Warnings []string          `json:"warnings"`
}

func historyOf(t testing.TB, result reap.Result) (h history) {
	t.Helper()
	if err := json.Unmarshal([]byte(result.Stdout), &h); err != nil {
		t.Fatalf("no history: %v\n%s%s", err, result.Stdout, result.Stderr)
	}
	return h
}

// lost returns the paths at which JSON lacks something that other JSON has, or has another
// value. What it has beyond that is no loss.
func lost(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		have, _ := got.(map[string]any)
		var all []string
		for name, value := range want {
			if _, there := have[name]; !there {
				all = append(all, path+"."+name+" is missing")
				continue
			}
			all = append(all, lost(path+"."+name, value, have[name])...)
		}
		return all
	case []any:
		have, _ := got.([]any)
		if len(have) != len(want) {
			return []string{path + " has another length"}
		}
		var all []string
		for i := range want {
			all = append(all, lost(path+"[]", want[i], have[i])...)
		}
		return all
	default:
		if want != got {
			return []string{path + " has another value"}
		}
		return nil
	}
}

// wantKept fails the test unless JSON has all that other JSON has.
func wantKept(t testing.TB, what string, want, got []byte) {
	t.Helper()
	var before, after any
	if err := json.Unmarshal(want, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &after); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, got)
	}
	for _, loss := range lost(what, before, after) {
		t.Errorf("%s\n was %s\n is %s", loss, want, got)
	}
}
