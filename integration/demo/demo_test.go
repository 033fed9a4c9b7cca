package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

func TestDemoTurnsOutAsTold(t *testing.T) {
	reaper, err := reap.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	if err := run(t.Context(), &out, reaper); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	assertNothingLeft(t, os.Getenv("TMPDIR"))
}

// assertNothingLeft fails the test if, ten seconds from now, there are files
// in the folder or processes that were told of it.
func assertNothingLeft(t *testing.T, tmp string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		files, err := os.ReadDir(tmp)
		if err != nil {
			t.Fatal(err)
		}
		processes := told(t, tmp)
		if len(files)+len(processes) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: files %v, processes %q", files, processes)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// told returns the processes whose command line names the folder.
func told(t *testing.T, tmp string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-eww", "-o", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, tmp) {
			found = append(found, line)
		}
	}
	return found
}
