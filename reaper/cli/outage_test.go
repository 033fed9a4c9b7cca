package cli

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outageDump is what README inspects.
const outageDump = "../../examples/outage/dump.json"

// The commands of README say the same at any time.
func TestExamplesOfAnOutage(t *testing.T) {
	for name, args := range map[string][]string{
		"inspect":   {"inspect", outageDump},
		"pools":     {"pools", "--from", outageDump, "--top", "nodes"},
		"explain":   {"explain", "--from", outageDump, "172.18.178.209"},
		"duplicate": {"explain", "--from", outageDump, "172.18.178.213"},
		"hangs":     {"explain", "--from", outageDump, "172.18.178.192/27"},
		"html":      {"inspect", outageDump, "-o", "html"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), streams(&stdout, &stderr), args); code != exitDone || stderr.Len() > 0 {
				t.Fatalf("exit code %d, stderr:\n%s", code, stderr.Bytes())
			}
			if name == "html" {
				if page := stdout.String(); !strings.Contains(page, "172.18.178.192") || !strings.Contains(page, "</html>") {
					t.Errorf("no page of the outage:\n%.500s", page)
				}
				return
			}
			golden := filepath.Join("testdata", "outage", name)
			if *update {
				if err := os.WriteFile(golden, stdout.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), stdout.String()); diff != "" {
				t.Errorf("%v (-want +got):\n%s", args, diff)
			}
		})
	}
}

// What a table names can be copied into a command, however narrow the terminal is.
func TestPrintedNamesAreTakenAtAnyWidth(t *testing.T) {
	flags := map[string]string{"POOL": "--pool", "NETWORK": "--pool", "POD": "--pod", "NODE": "--node", "IP": "--ip"}
	for _, width := range []int{80, 100, 140, 200} {
		taken := make(map[string]bool) // flags with their values
		for _, args := range [][]string{
			{"inspect", outageDump, "--all"}, {"inspect", outageDump}, {"pools", "--from", outageDump, "--all", "--top", "nodes"},
			{"explain", "--from", outageDump, "node/worker-03"}, {"status", "--from", outageDump},
		} {
			var stdout, stderr bytes.Buffer
			w := streams(&stdout, &stderr)
			w.stdoutTerminal, w.stdoutWidth = true, width
			w.env = func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] }
			if code := run(t.Context(), w, args); code != exitDone {
				t.Fatalf("%v ends with %d: %s", args, code, stderr.Bytes())
			}
			for _, table := range strings.Split(stdout.String(), "\n\n") {
				heading, rows, _ := strings.Cut(table, "\n")
				for _, column := range regexp.MustCompile(`\b(POOL|NETWORK|POD|NODE|IP)( {2,}|$)`).FindAllStringSubmatchIndex(heading, -1) {
					for row := range strings.Lines(rows) {
						runes := []rune(strings.TrimSuffix(row, "\n"))
						if !strings.Contains(row, "  ") { // a line below the rows
							continue
						}
						cell := string(runes[min(column[0], len(runes)):min(column[1], len(runes))])
						if name := strings.TrimPrefix(strings.TrimSpace(cell), "pool "); name != "" {
							taken[flags[heading[column[2]:column[3]]]+"="+name] = true
						}
					}
				}
			}
		}
		delete(taken, "--node=(unknown)")
		for _, flag := range []string{"--pool=10.30.0.128/26", "--pool=kube-system/172.18.178.192-27", "--pool=four", "--pod=payments/gateway-84b6c5d9f-blv7h", "--node=worker-04", "--ip=172.18.178.200"} {
			if !taken[flag] {
				t.Errorf("at %d columns, no table has %s", width, flag)
			}
		}
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), streams(&stdout, &stderr), slices.AppendSeq([]string{"inspect", outageDump}, maps.Keys(taken))); code != exitDone {
			t.Errorf("a table of %d columns names what is not there: %s", width, stderr.Bytes())
		}
	}
}
