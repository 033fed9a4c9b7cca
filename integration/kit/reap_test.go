package kit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// standIn returns a script in the binary's place.
func standIn(t *testing.T, script string) *reap.Reaper {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ip-reaper")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return &reap.Reaper{Path: path}
}

func TestRunTellsWhatTheBinaryDid(t *testing.T) {
	t.Setenv("KUBECONFIG", "/operator/kubeconfig")
	t.Setenv("IP_REAPER_POLICY", "/operator/policy")
	for _, tt := range []struct {
		name, script string
		want         reap.Result
	}{
		{"table", "echo table; echo log >&2", reap.Result{Stdout: "table\n", Stderr: "log\n"}},
		{"exit code", "exit 4", reap.Result{ExitCode: reap.ExitLimit}},
		{"arguments", `echo "$*"`, reap.Result{Stdout: "run --policy p.yaml\n"}},
		{"environment", `echo "$KUBECONFIG$IP_REAPER_POLICY"`, reap.Result{Stdout: "\n"}},
		{
			"report", `echo '{"kind":"ReapReport","summary":{"released":2},"later":1}'; exit 3`,
			reap.Result{
				ExitCode: reap.ExitPartial,
				Stdout:   `{"kind":"ReapReport","summary":{"released":2},"later":1}` + "\n",
				Report:   &reap.Report{Kind: "ReapReport", Summary: reap.Summary{Released: 2}},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := standIn(t, tt.script).Run(t.Context(), "run", "--policy", "p.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKilledProcessHasNoExitCode(t *testing.T) {
	p, err := standIn(t, "exec sleep 60").Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	result, err := p.Wait()
	if err != nil || result.ExitCode != reap.ExitedByKill {
		t.Errorf("exit code %d, %v, want %d", result.ExitCode, err, reap.ExitedByKill)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("kill what has ended: %v", err)
	}
}

func TestRunDoesNotOutliveItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := standIn(t, "exec sleep 60").Run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run: %v, want %v", err, context.DeadlineExceeded)
	}
}
