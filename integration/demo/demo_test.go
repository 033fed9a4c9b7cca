package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A user who runs the demo sees every step behave as expected, with correct texts, and it leaves no
// file behind.
func TestDemoBehavesAsExpected(t *testing.T) {
	reaper, err := reap.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	over := make(chan struct{})
	close(over)
	if err := run(t.Context(), &out, reaper, over); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	row := regexp.MustCompile(`(?m)^ +kube-system/172.18.178.192-27 .*$`).FindString(out.String())
	if cells := strings.Fields(row); len(cells) < 3 || cells[2] != "100%" || cells[len(cells)-1] != "5" {
		t.Errorf("while the pool is exhausted, its row is %q, want 100%% of 5 addresses", row)
	}
	if !regexp.MustCompile(`(?m)^    \$ export KUBECONFIG=/.*/kubeconfig$`).MatchString(out.String()) {
		t.Error("with KEEP, it does not say how to reach the API server")
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "    $ export ") { // to be copied whole
			continue
		}
		if utf8.RuneCountInString(line) > 121 { // with the line break
			t.Errorf("more than 120 columns: %s", line)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
