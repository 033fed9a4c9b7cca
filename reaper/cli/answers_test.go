package cli

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// TestAnswersAreGolden asks about states after public reports. Of each answer it compares the first line and the
// advice: each line of the file that begins with "# " is a command, and the lines below are its answer.
func TestAnswersAreGolden(t *testing.T) {
	const golden = "testdata/answers/answers.txt"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("testdata")
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		command, is := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if is {
			got.WriteString("# " + command + "\n" + adviceOf(t, strings.Fields(command)) + "\n")
		}
	}
	t.Chdir("..")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("the answers (-want +got):\n%s", diff)
	}
}

// adviceOf returns the first line of an answer, what it says of events, nodes and networks in few lines, and all of
// its advice.
func adviceOf(t *testing.T, args []string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), streams(&stdout, &stderr), slices.Concat(args, []string{"--policy=answers/policy.yaml"}))
	if code != exitDone {
		t.Fatalf("%v: exit code %d, %s", args, code, stderr.String())
	}
	var value bytes.Buffer
	run(t.Context(), streams(&value, &stderr), slices.Concat(args, []string{"--policy=answers/policy.yaml", "-o=json"}))
	if err := reapertest.Valid("../../..", value.Bytes()); err != nil {
		t.Errorf("%v: %v", args, err)
	}
	var advice strings.Builder
	first := true
	for line := range strings.Lines(stdout.String()) {
		switch {
		case strings.HasPrefix(line, "warning: "):
		case first:
			first = false
			advice.WriteString(line)
		case tells.MatchString(line):
			advice.WriteString(line)
		}
	}
	return ago.ReplaceAllString(advice.String(), "")
}

// tells matches a line that says what to do.
var tells = regexp.MustCompile(`^  (it |but |to change|closed|only |event|   +\$)`)

// ago matches the age of a time.
var ago = regexp.MustCompile(` \([0-9smhdy]+ ago\)`)
