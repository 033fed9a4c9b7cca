package storm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// reaperNamespace is where the reaper keeps what it remembers.
const reaperNamespace = "ip-reaper"

// releaseNow is a policy without a grace period, which would cover up for a mistake.
const releaseNow = `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
dryRun: false
gracePeriod: 0s
minAge: 0s
limits: {maxFraction: 1}
pods: {superseded: release}
`

// A release is what a run of the reaper reported to have released.
type release struct {
	backend, ip  string
	began, ended time.Time // of the run
}

// reaper returns a function that runs the binary once.
func reaper(c *cluster.Cluster, r *reap.Reaper) (func(context.Context) (reap.Result, error), error) {
	file := filepath.Join(c.Dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(releaseNow), 0o600); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (reap.Result, error) {
		return r.Run(ctx, "run", "--policy", file, "--kubeconfig", c.Kubeconfig, "--context", cluster.ContextName,
			"--state-namespace", reaperNamespace, "--output", "json")
	}, nil
}

// reap runs the reaper once, if there is one, and counts what it did.
func (s *storm) reap(ctx context.Context) error {
	if s.clean == nil {
		return nil
	}
	began := time.Now()
	result, err := s.clean(ctx)
	ended := time.Now()
	if err != nil {
		return err
	}
	switch result.ExitCode {
	case reap.ExitDone, reap.ExitPartial, reap.ExitLimit, reap.ExitLocked:
	default:
		return fmt.Errorf("ip-reaper exits with %d:\n%s", result.ExitCode, result.Stderr)
	}
	if result.Report == nil && result.ExitCode == reap.ExitDone {
		return fmt.Errorf("ip-reaper printed no report:\n%s", result.Stderr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.runs++
	s.tally.exits[result.ExitCode]++
	if result.ExitCode != reap.ExitDone {
		s.tally.complaints = append(s.tally.complaints, complaint(result))
	}
	if result.Report == nil {
		return nil
	}
	s.tally.released += result.Report.Summary.Released
	for _, e := range result.Report.Entries {
		if e.Outcome == "released" {
			s.released = append(s.released, release{e.Backend, e.IP, began, ended})
		}
	}
	return nil
}

// complaint is why a run did not exit with 0, in its own words.
func complaint(result reap.Result) string {
	var why []string
	if result.Report != nil {
		for _, b := range result.Report.Backends {
			if b.Status != "ok" && b.Status != "skipped" {
				why = append(why, strings.Join([]string{b.Name, b.Status, b.Message}, " "))
			}
		}
		for _, e := range result.Report.Entries {
			if e.Outcome == "failed" {
				why = append(why, fmt.Sprintf("%s %s %s: %s", e.Backend, e.Pool, e.IP, e.Error))
			}
		}
	}
	if len(why) == 0 {
		why = append(why, strings.TrimSpace(result.Stderr))
	}
	return fmt.Sprintf("exit %d: %s", result.ExitCode, strings.Join(why, "; "))
}
