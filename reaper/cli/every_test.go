package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/cri/critest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// everyNode is a node on which runs are repeated.
type everyNode struct {
	*testing.T
	runtime     *critest.Runtime
	work        string
	out, errs   bytes.Buffer
	waited      []time.Duration
	betweenRuns func(n int) error // after the nth run; its error ends the program
}

func newEveryNode(t *testing.T) *everyNode {
	n := &everyNode{T: t, runtime: critest.Start(t), work: t.TempDir()}
	n.runtime.Add(census.Sandbox{ID: liveSandbox, Pod: ipam.PodRef{Namespace: "shop", Name: "alive"}})
	if err := leasesIn(n.work); err != nil {
		t.Fatal(err)
	}
	return n
}

// lease adds a lease whose sandbox is gone.
func (n *everyNode) lease(address string) {
	n.Helper()
	if err := leaseIn(n.work, address, deadSandbox, 2*time.Hour); err != nil {
		n.Fatal(err)
	}
}

// left returns the leases.
func (n *everyNode) left() string {
	n.Helper()
	files, err := filepath.Glob(filepath.Join(n.work, "data", "cbr0", "10.*"))
	if err != nil {
		n.Fatal(err)
	}
	for i, file := range files {
		files[i] = filepath.Base(file)
	}
	return strings.Join(files, " ")
}

// run runs the program, and returns its exit code.
func (n *everyNode) run(ctx context.Context, args ...string) int {
	w := streams(&n.out, &n.errs)
	w.sleep = func(_ context.Context, d time.Duration) error {
		n.waited = append(n.waited, d)
		return n.betweenRuns(len(n.waited))
	}
	return run(ctx, w, append([]string{
		"node", "--every", "15m", "--node-name", "node-a", "--policy", filepath.Join(n.work, "policy.yaml"), "--dry-run=false",
		"--runtime-endpoint", n.runtime.Endpoint(), "--state-dir", filepath.Join(n.work, "state"), "--termination-log", "",
	}, args...))
}

// hasExitCode checks the exit code in a file of metrics.
func (n *everyNode) hasExitCode(file string, want int) {
	n.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		n.Fatal(err)
	}
	if line := fmt.Sprintf("\nip_reaper_run_exit_code{node=\"node-a\"} %d\n", want); !strings.Contains(string(text), line) {
		n.Errorf("the metrics do not have%s:\n%s", line, text)
	}
}

// reports returns how many reports were printed.
func (n *everyNode) reports() int { return strings.Count(n.out.String(), "node node-a") }

// A grace period as long as the interval is over when the next run looks.
func TestRepeatedRunsAreNotCloserThanTheySay(t *testing.T) {
	const every = 15 * time.Minute
	for range 1000 {
		if d := jittered(every); d < every || d > every+every/10 {
			t.Fatalf("the next run begins after %v, want 15m, or up to a tenth more", d)
		}
	}
}

// A run that fails is reported once, and the next one tries again.
func TestRepeatedRunsSurviveAFailure(t *testing.T) {
	n := newEveryNode(t)
	policy := filepath.Join(n.work, "policy.yaml")
	good, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	metrics := filepath.Join(n.work, "ip-reaper.prom")
	wantCodes := []int{exitDone, exitLimit, exitUsage, exitDone}
	n.betweenRuns = func(run int) error {
		if run <= len(wantCodes) {
			n.hasExitCode(metrics, wantCodes[run-1])
		}
		n.lease("10.1.0.6")
		switch run {
		case 1: // the runtime lost its sandboxes, or is another one
			n.runtime.Remove(liveSandbox)
			return nil
		case 2: // the policy is edited
			n.runtime.Add(census.Sandbox{ID: liveSandbox})
			return os.WriteFile(policy, []byte("kind: nonsense\n"), 0o600)
		case 3:
			return os.WriteFile(policy, good, 0o600)
		}
		if left := n.left(); left != "10.1.0.6" {
			t.Errorf("the leases are %q, want the one that was added", left)
		}
		return context.Canceled
	}
	if code := n.run(t.Context(), "--metrics-file", metrics); code != exitDone {
		t.Errorf("exit code %d, want 0: it was stopped between two runs", code)
	}
	told := n.errs.String()
	if got := strings.Count(told, "ip-reaper: the container runtime has no sandboxes"); got != 1 || n.reports() != 3 {
		t.Errorf("%d refusals and %d reports, want 1 and 3:\n%s", got, n.reports(), told)
	}
	if !strings.Contains(told, "ip-reaper: policy "+policy) {
		t.Errorf("nothing tells of the policy:\n%s", told)
	}
}

func TestMistakeInTheFirstRunEndsTheProgram(t *testing.T) {
	n := newEveryNode(t)
	n.runtime.Stop()
	n.betweenRuns = func(int) error {
		t.Error("there is a second run")
		return context.Canceled
	}
	if code := n.run(t.Context()); code != exitUsage || !strings.Contains(n.errs.String(), "--runtime-endpoint") {
		t.Errorf("exit code %d, want 2 and what to do:\n%s", code, &n.errs)
	}
}

// Each run reads its files again, and a pipe is empty by then: every run after the first would
// fail, and release nothing.
func TestRepeatedRunsRefuseAFileThatCanBeReadOnce(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	pipe := fmt.Sprintf("/dev/fd/%d", read.Fd())
	for _, args := range [][]string{
		{"--policy", "-"}, {"--policy", pipe}, {"--pods", "api", "--kubeconfig", pipe}, {"--runtime-config", pipe},
	} {
		n := newEveryNode(t)
		n.betweenRuns = func(int) error {
			t.Errorf("%v: there is a run", args)
			return context.Canceled
		}
		want := "--every and --" + strings.TrimPrefix(args[len(args)-2], "--") + " " + args[len(args)-1] + " contradict each other"
		if code := n.run(t.Context(), args...); code != exitUsage || !strings.Contains(n.errs.String(), want) {
			t.Errorf("%v: exit code %d, want 2 and %q:\n%s", args, code, want, &n.errs)
		}
	}
}

// Promise 2. A stop in the middle of a run keeps what the run has not released.
func TestStopEndsRepeatedRuns(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   int // the list of sandboxes at which the program is stopped; 0: between two runs
		want int
		left string
	}{
		{"in the census", 1, exitInterrupted, "10.1.0.6"},
		{"in the second look", 2, exitInterrupted, "10.1.0.6"},
		{"between two runs", 0, exitDone, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newEveryNode(t)
			n.lease("10.1.0.6")
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			n.runtime.OnList(func(context.Context) error {
				if n.runtime.Lists() == tt.at {
					stop()
				}
				return nil
			})
			n.betweenRuns = func(int) error {
				stop()
				return ctx.Err()
			}
			if code := n.run(ctx); code != tt.want || n.left() != tt.left || n.reports() != 1 {
				t.Errorf("exit code %d with the leases %q, %d reports, want %d, %q and one\n%s", code, n.left(), n.reports(), tt.want, tt.left, &n.errs)
			}
			if stopped := len(n.waited) == 0; stopped != (tt.at > 0) {
				t.Errorf("it waited for %v", n.waited)
			}
		})
	}
}
