package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/ip-reaper/ip-reaper/integration/bench/program"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/rights"
)

// A way is a program that does one part.
type way struct {
	part, name string
	writes     bool
	run        func(ctx context.Context) (cost, error)
}

// The names of the ways that others are compared with.
const (
	floorWay  = "floor"
	reaperWay = "ip-reaper"
)

// ways are those of the parts that were asked for. Whereabouts' reconciler releases what a
// run releases.
func (g *stage) ways() []way {
	var all []way
	if g.parts["plan"] {
		all = append(all, way{"plan", floorWay, false, g.floor}, way{"plan", reaperWay, false, g.plan})
	}
	if g.parts["run"] {
		all = append(all, way{"run", floorWay, true, g.floorRun}, way{"run", reaperWay, true, g.reap})
	}
	if g.parts["whereabouts"] {
		all = append(all,
			way{"run", "reconciler", true, g.reconcile(reconciler, 0)},
			way{"run", "reconciler, no throttle", true, g.reconcile(reconciler, -1)},
			way{"run", "reconciler, no throttle, map", true, g.reconcile(reconcilerMap, -1)})
	}
	return all
}

// plan has ip-reaper plan.
func (g *stage) plan(ctx context.Context) (cost, error) {
	c, summary, err := g.reaper(ctx, "--dry-run")
	if err == nil && (summary.Entries != 2*g.size.total() || summary.Planned != 2*g.size.stale()) {
		err = fmt.Errorf("the plan has %d allocations and releases %d, want %d and %d",
			summary.Entries, summary.Planned, 2*g.size.total(), 2*g.size.stale())
	}
	return c, err
}

// reap has ip-reaper release.
func (g *stage) reap(ctx context.Context) (cost, error) {
	c, _, err := g.reaper(ctx)
	return c, err
}

// reaper runs the binary, which has to exit with 0, and returns its summary.
func (g *stage) reaper(ctx context.Context, more ...string) (c cost, summary reap.Summary, err error) {
	policy, told := g.file("policy.yaml"), g.file("termination-log")
	err = errors.Join(os.WriteFile(policy, []byte(program.Policy), 0o600), os.WriteFile(told, nil, 0o600))
	if err != nil {
		return c, summary, err
	}
	c, err = measure(ctx, g.limit, g.binary, append([]string{
		"run", "--policy=" + policy, "--kubeconfig=" + g.kubeconfig, "--context=" + cluster.ContextName,
		"--state-namespace=" + rights.Home, "--concurrency=" + strconv.Itoa(g.concurrency),
		"--timeout=" + g.limit.String(), "--termination-log=" + told,
	}, more...))
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

// The builds of Whereabouts' reconciler.
const (
	reconciler    = "whereabouts-reconciler"
	reconcilerMap = "whereabouts-reconciler-map"
)

// reconcile has a build of Whereabouts' reconciler release, as an administrator to whom API
// priority and fairness does not apply. 0 requests a second are client-go's default, which
// is as it is shipped, and -1 are without a limit. Its failure is a result, too: it gives up
// lists that take 30 seconds.
func (g *stage) reconcile(build string, qps int) func(ctx context.Context) (cost, error) {
	return func(ctx context.Context) (cost, error) {
		path, err := assets.Path(build)
		if err != nil {
			return cost{}, err
		}
		c, err := measure(ctx, g.limit, path, []string{"-kubeconfig=" + g.cluster.Kubeconfig, "-qps=" + strconv.Itoa(qps)})
		if err != nil && !errors.Is(err, errSlow) && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", errPartial, err)
		}
		return c, err
	}
}
