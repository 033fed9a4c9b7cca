package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// PIDs returns the process IDs that the guard would kill.
func PIDs(t *testing.T, c *Cluster) []int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Dir, "*.pid"))
	if err != nil || len(files) != 2 {
		t.Fatalf("pid files: %v, %v, want those of etcd and the API server", files, err)
	}
	var pids []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("process %d of %s: %v", pid, file, err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// Abandon does what the kernel does when the program that started the cluster
// is killed: it closes the guard's pipe.
func Abandon(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.guard.Release(); err != nil {
		t.Fatal(err)
	}
}

// AssertGone fails the test if the folder or one of the processes is there
// after ten seconds.
func AssertGone(t *testing.T, dir string, pids []int) {
	t.Helper()
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s is still there: %v", dir, err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, pid := range pids {
		for syscall.Kill(pid, 0) == nil {
			if time.Now().After(deadline) {
				t.Fatalf("process %d is still there", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
