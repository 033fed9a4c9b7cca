package kit_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/guard"
)

func startGuard(t *testing.T) (*guard.Guard, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "guarded")
	must(t, os.Mkdir(dir, 0o700))
	g, err := guard.Start(dir)
	must(t, err)
	return g, dir
}

// runShell starts a shell and returns when it has printed that it is ready.
func runShell(t *testing.T, g *guard.Guard, script string) *guard.Process {
	t.Helper()
	p, err := g.Run("shell", "/bin/sh", []string{"-c", script}, []string{"WORD=ready"})
	must(t, err)
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(p.Log(), "ready") {
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %s", p.Log())
		}
		time.Sleep(5 * time.Millisecond)
	}
	return p
}

func TestStopEndsTheProcess(t *testing.T) {
	for name, script := range map[string]string{
		"willing":  "echo $WORD; exec sleep 60",
		"stubborn": "trap '' TERM; echo $WORD; while :; do sleep 60; done",
	} {
		t.Run(name, func(t *testing.T) {
			g, dir := startGuard(t)
			p := runShell(t, g, script)
			must(t, p.Stop(100*time.Millisecond))
			select {
			case <-p.Done():
			default:
				t.Error("the process is not done")
			}
			if _, err := os.Stat(filepath.Join(dir, "shell.pid")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("pid file: %v, want none", err)
			}
			must(t, g.Release())
		})
	}
}

func TestStopSaysThatTheProcessHadEnded(t *testing.T) {
	g, _ := startGuard(t)
	p := runShell(t, g, "echo $WORD; exit 3")
	<-p.Done()
	err := p.Stop(time.Second)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "ready") {
		t.Errorf("stop: %v, want its exit status and its output", err)
	}
	must(t, g.Release())
}

func TestGuardKillsWhatIsLeft(t *testing.T) {
	g, dir := startGuard(t)
	p := runShell(t, g, "echo $WORD; exec sleep 60")
	text, err := os.ReadFile(filepath.Join(dir, "shell.pid"))
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	must(t, syscall.Kill(pid, 0))
	must(t, g.Release())
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Error("the process is still there")
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s is still there: %v", dir, err)
	}
}
