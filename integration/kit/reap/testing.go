package reap

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// StartT starts a run under a policy that reports everything in JSON. Its environment also has env.
func StartT(t testing.TB, kubeconfig, policy string, env []string, args ...string) *Process {
	t.Helper()
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	r.Env = env
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := r.Start(t.Context(), slices.Concat([]string{
		"run", "--kubeconfig", kubeconfig, "--context", cluster.ContextName, "--state-namespace", cluster.PoolNamespace, "--policy", file, "-o", "json", "--all",
	}, ByFile(policy), args)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// EndT waits for the end of a run, which must exit with the code and print a report.
func (p *Process) EndT(t testing.TB, code int) Result {
	t.Helper()
	result, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if result.ExitCode != code || result.Report == nil {
		t.Fatalf("exit code %d, want %d and a report; stderr:\n%s", result.ExitCode, code, result.Stderr)
	}
	return result
}
