package nodestate

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// A test that kills processes, or runs several, starts this test binary again with the name
// of a task and a folder in the environment. A child prints a number when what it wrote is
// promised to be on the disk.
const (
	taskVariable   = "NODESTATE_TASK"
	folderVariable = "NODESTATE_FOLDER"
	firstVariable  = "NODESTATE_FIRST"
)

// TestChild is what a child process runs. In the test run itself, it does nothing.
func TestChild(t *testing.T) {
	f := NewFolder(os.Getenv(folderVariable))
	first, _ := strconv.Atoi(os.Getenv(firstVariable))
	switch os.Getenv(taskVariable) {
	case "ledgers":
		saveForever(t, f, first)
	case "merge":
		mergeInto(t, f, first)
	case "journals":
		journalForever(t, f, first)
	case "lock":
		if _, err := f.Lock(at(noon)).Acquire(t.Context(), "run-"+strconv.Itoa(first)); err != nil {
			t.Fatal(err)
		}
		fmt.Println(first)
		select {}
	}
}

// saveForever saves ledgers of ever more entries: first, first+1, and so on.
func saveForever(t *testing.T, f *Folder, first int) {
	l := f.Ledgers()
	if _, err := l.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := first; ; n++ {
		if err := l.Save(t.Context(), ledgerOf(t, 0, n)); err != nil {
			t.Fatal(err)
		}
		fmt.Println(n)
	}
}

// merges is how many entries mergeInto adds.
const merges = 50

// mergeInto adds entries one by one to what the ledger has, as a run does that learns of
// another one: it loads again after ErrAgain.
func mergeInto(t *testing.T, f *Folder, first int) {
	for n := first; n < first+merges; {
		l := f.Ledgers()
		have, err := l.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = l.Save(t.Context(), have.Merge(ledgerOf(t, n, 1)))
		switch {
		case err == nil:
			n++
		case !errors.Is(err, reaper.ErrAgain):
			t.Fatal(err)
		}
	}
}

// journalForever writes the journals of runs first, first+1, and so on, each in two writes,
// and prints the number of a run when both writes are done.
func journalForever(t *testing.T, f *Folder, first int) {
	for n := first; ; n++ {
		j := f.Journals(journal.Retention{Runs: 3})
		for _, word := range []string{"a", "b"} {
			if err := j.Write(t.Context(), aRun(n), someRecords(word, 20)); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Println(n)
		if err := errors.Join(j.Prune(t.Context()), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// child returns a command that runs a task in a process of its own.
func child(t *testing.T, task string, f *Folder, first int) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), taskVariable+"="+task, folderVariable+"="+f.Path(), firstVariable+"="+strconv.Itoa(first))
	cmd.Stderr = os.Stderr
	return cmd
}

// killed runs a task until it has printed so many numbers, and kills it a moment later. It
// returns the last number that the task printed.
func killed(t *testing.T, cmd *exec.Cmd, numbers int, later time.Duration) (last int) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for seen := 0; lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
		last = n
		if seen++; seen == numbers {
			time.AfterFunc(later, func() { _ = cmd.Process.Kill() })
		}
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return last
}
