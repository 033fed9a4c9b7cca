package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The kubelet keeps 4096 bytes: more would cut the JSON in the middle.
func TestTerminationMessageFits(t *testing.T) {
	dir := t.TempDir()
	r := report.Report{
		Run: report.RunInfo{ID: "20260301-120000-ABCDEF"}, Result: report.Result{ExitCode: exitUnexpected},
		Summary:  report.Counts{Entries: 11, InUse: 2, Held: 3, Suspected: 1, Planned: 5, Released: 1, Changed: 2, Failed: 1},
		Backends: []report.BackendReport{{Name: "whereabouts", Status: ipam.StatusPartial}, {Name: "calico", Status: ipam.StatusFailed}},
	}
	rapid.Check(t, func(t *rapid.T) {
		cause := rapid.OneOf(
			rapid.StringN(0, 6000, -1),
			rapid.Map(rapid.IntRange(0, 9000), func(n int) string { return strings.Repeat("x", n) }),
			rapid.Map(rapid.IntRange(0, 9000), func(n int) string { return strings.Repeat("<\x00\xff", n) }),
			rapid.Map(rapid.IntRange(600, 700), func(n int) string { return strings.Repeat("é", n) }),
		).Draw(t, "cause")
		file := filepath.Join(dir, "log")
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := writeTermination(file, r, errors.New(cause)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var word terminationMessage
		if err := json.Unmarshal(got, &word); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if len(got) > 4096 || strings.Count(string(got), "\n") != 1 || got[len(got)-1] != '\n' {
			t.Fatalf("%d bytes, %d lines, want one line of at most 4096", len(got), strings.Count(string(got), "\n"))
		}
		if word.ExitCode != 1 || word.Summary != r.Summary || word.Backends["calico"] != ipam.StatusFailed.String() {
			t.Fatalf("message = %+v", word)
		}
	})
}
