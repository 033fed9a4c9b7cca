package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// plan makes ip-reaper plan, with additional environment variables. The plan must have and release
// these numbers of allocations.
func (g *stage) plan(allocations, planned int, env ...string) func(context.Context) (cost, error) {
	return g.planWith(allocations, planned, env)
}

// planByFile is plan by a policy file that says the same as the installed policy.
func (g *stage) planByFile(allocations, planned int) func(context.Context) (cost, error) {
	return func(ctx context.Context) (cost, error) {
		file := g.file("policy.yaml")
		if err := os.WriteFile(file, []byte(reap.ReleaseNow), 0o600); err != nil {
			return cost{}, err
		}
		return g.planWith(allocations, planned, nil, "--policy="+file)(ctx)
	}
}

// planWith is plan with additional arguments.
func (g *stage) planWith(allocations, planned int, env []string, more ...string) func(context.Context) (cost, error) {
	return func(ctx context.Context) (cost, error) {
		c, summary, err := g.reaper(ctx, env, slices.Concat([]string{"--dry-run"}, more)...)
		if err == nil && (summary.Entries != allocations || summary.Planned != planned) {
			err = fmt.Errorf("the plan has %d allocations and releases %d, want %d and %d",
				summary.Entries, summary.Planned, allocations, planned)
		}
		return c, err
	}
}

// reap makes ip-reaper release, with additional environment variables.
func (g *stage) reap(env ...string) func(context.Context) (cost, error) {
	return func(ctx context.Context) (cost, error) {
		c, _, err := g.reaper(ctx, env)
		return c, err
	}
}

// reaper runs the binary, which must exit with 0, and returns its summary.
func (g *stage) reaper(ctx context.Context, env []string, more ...string) (c cost, summary reap.Summary, err error) {
	told := g.file("termination-log")
	if err := os.WriteFile(told, nil, 0o600); err != nil {
		return c, summary, err
	}
	c, err = measure(ctx, g.limit, command{g.binary, slices.Concat([]string{
		"run", "--kubeconfig=" + g.kubeconfig, "--context=" + cluster.ContextName,
		"--state-namespace=" + reap.Home, "--concurrency=" + strconv.Itoa(g.concurrency),
		"--timeout=" + g.limit.String(), "--termination-log=" + told,
	}, reap.ByFile(reap.ReleaseNow), more), env})
	if err != nil {
		return c, summary, err
	}
	data, err := os.ReadFile(told)
	if err != nil {
		return c, summary, err
	}
	var message struct{ Summary reap.Summary }
	err = json.Unmarshal(data, &message)
	return c, message.Summary, err
}
