package cli

import (
	"bytes"
	"os"
	"path/filepath"
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
