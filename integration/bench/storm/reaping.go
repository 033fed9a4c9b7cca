package storm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// reaperNamespace is the reaper's state namespace.
const reaperNamespace = "ip-reaper"

// releaseNow is a policy without a grace period, which would hide mistakes.
const releaseNow = reap.ReleaseNow + "pods: {superseded: release}\n"

// A release is a release that a run of the reaper reported.
type release struct {
	backend, ip  string
	began, ended time.Time // of the run
}

// reaper returns a function that runs the binary once.
func reaper(c *cluster.Cluster) (func(context.Context) (reap.Result, error), error) {
	r, err := reap.New()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(c.Dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(releaseNow), 0o600); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (reap.Result, error) {
		return r.Run(ctx, "run", "--policy", file, "--kubeconfig", c.Kubeconfig, "--context", cluster.ContextName,
			"--state-namespace", reaperNamespace, "--dry-run=false", "--output", "json")
	}, nil
}

// reap runs the reaper once, and counts what it did. A part may fail: a busy machine may be too
// slow for a warrant.
func (s *storm) reap(ctx context.Context) error {
	began := time.Now()
	result, err := s.clean(ctx)
	ended := time.Now()
	if err != nil {
		return err
	}
	if result.Report == nil || result.ExitCode != reap.ExitDone && result.ExitCode != reap.ExitPartial {
		return fmt.Errorf("ip-reaper exits with %d:\n%s", result.ExitCode, result.Stderr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.Runs++
	s.tally.Released += result.Report.Summary.Released
	for _, e := range result.Report.Entries {
		if e.Outcome == "released" {
			s.released = append(s.released, release{e.Backend, e.IP, began, ended})
		}
	}
	return nil
}
