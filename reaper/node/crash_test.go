package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// folderVariable names the folder to the process that TestLockOfARunThatIsKilledIsFree kills.
const folderVariable = "NODE_FOLDER"

// TestChild is what that process runs. In a normal test run, it does nothing.
func TestChild(t *testing.T) {
	path := os.Getenv(folderVariable)
	if path == "" {
		return
	}
	if _, err := NewFolder(path).Lock().Acquire(t.Context(), "run-7"); err != nil {
		t.Fatal(err)
	}
	fmt.Println("locked")
	select {}
}

// Promise 8: the lock of a killed process is free. Otherwise, nothing would be released on the
// node until someone removed the file.
func TestLockOfARunThatIsKilledIsFree(t *testing.T) {
	f := newFolder(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), folderVariable+"="+f.Path())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	var locked *reaper.LockedError
	if _, err := f.Lock().Acquire(t.Context(), "run-1"); !errors.As(err, &locked) || locked.Holder != "run-7" {
		t.Errorf("Acquire = %v, want that run-7 has the lock", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	release, err := f.Lock().Acquire(t.Context(), "run-1")
	if err != nil {
		t.Fatalf("Acquire after the kill: %v", err)
	}
	release()
}
