package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// asDemo in the environment makes the test binary the demo itself.
const asDemo = "IP_REAPER_TEST_AS_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" {
		main()
		return
	}
	kit.Main(m, kit.Options{WatchCache: true})
}

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

func TestEveryReaperThatDoesOtherwise(t *testing.T) {
	const (
		names   = "echo 172.18.178.199 172.18.178.200\n"
		forReal = "grep -q 'dryRun: false' $3 || exit 0\n"
		patch   = "kubectl --kubeconfig $5 patch ippools.whereabouts.cni.cncf.io 172.18.178.192-27 --type=merge >&2 -p "
	)
	otherwise := []struct{ name, script, want string }{
		{
			"releases a live pod's address",
			names + forReal + patch + `'{"spec":{"allocations":{"6":null,"7":null,"8":null}}}'`,
			"the pool is not what it was without the dead pods' entries",
		},
		{"writes in a dry run", names + patch + `'{"metadata":{"labels":{"a":"b"}}}'`, "the dry run wrote"},
		{"finds nothing", "", "the report does not name 172.18.178.199"},
		{"fails", "echo sorry >&2; exit 3", "ip-reaper exits with 3:\nsorry"},
		{"releases nothing", names, "the pool is not what it was without the dead pods' entries"},
		{
			"leaves the reservations",
			names + forReal + patch + `'{"spec":{"allocations":{"7":null,"8":null}}}'`,
			"reservations by address",
		},
	}
	if testing.Short() {
		otherwise = otherwise[:2]
	}
	for _, tt := range otherwise {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster.StartT(t)
			c.ResetT(t)
			var out strings.Builder
			d := &demo{out: &out, cluster: c, reaper: standIn(t, tt.script), deployment: newPods()}
			if err := d.outage(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("demo: %v, want %q in it\n%s", err, tt.want, out.String())
			}
		})
	}
}

// standIn returns a script in the place of the reaper.
func standIn(t *testing.T, script string) *reap.Reaper {
	t.Helper()
	bin, err := filepath.Abs("../bin")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ip-reaper")
	text := "#!/bin/sh\nPATH=" + bin + ":$PATH HOME=" + t.TempDir() + "\nexport PATH HOME\n" + script
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return &reap.Reaper{Path: path}
}

func TestEverySignalLeavesNothing(t *testing.T) {
	signals := []struct {
		name string
		line string // the signal is sent when this is a part of a line
		file string // and this matches a file
		sig  os.Signal
		exit int
	}{
		{"killed", "$ ip-reaper run", "*", os.Kill, reap.ExitedByKill},
		{"while the API server starts", "whereabouts plugin.", "*/kube-apiserver.pid", syscall.SIGTERM, reap.ExitSignal},
		{"while an address is given", "K8S_POD_NAME", "*", os.Interrupt, reap.ExitSignal},
		{"while ip-reaper runs", "$ ip-reaper run", "*", syscall.SIGTERM, reap.ExitSignal},
	}
	if testing.Short() {
		signals = signals[:1]
	}
	for _, tt := range signals {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-ip-reaper", standIn(t, "exec sleep 5").Path)
			cmd.Env = append(os.Environ(), asDemo+"=1", "TMPDIR="+tmp)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if strings.Contains(lines.Text(), tt.line) {
					break
				}
			}
			awaitFile(t, filepath.Join(tmp, tt.file))
			if err := cmd.Process.Signal(tt.sig); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, out); err != nil {
				t.Error(err)
			}
			err = cmd.Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != tt.exit {
				t.Errorf("demo: %v, want exit code %d", err, tt.exit)
			}
			assertNothingLeft(t, tmp)
		})
	}
}

func awaitFile(t *testing.T, pattern string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if files, err := filepath.Glob(pattern); err != nil || len(files) > 0 {
			return
		}
	}
	t.Fatalf("no file matches %s", pattern)
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
