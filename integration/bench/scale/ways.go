package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// A way is how a program does one part.
type way struct {
	part, name string
	writes     bool
	run        func(ctx context.Context) (cost, error)
}

// reaperWay is the name of the way that others are compared with.
const reaperWay = "ip-reaper"

// ways returns the ways of the requested parts. Whereabouts' reconciler releases what a run
// releases.
func (g *poolStage) ways() []way {
	var all []way
	if g.parts["plan"] {
		allocations, planned := 2*g.size.total(), 2*g.size.stale()
		all = append(all,
			way{"plan", reaperWay, false, g.plan(allocations, planned)},
			way{"plan", "ip-reaper --policy", false, g.planByFile(allocations, planned)})
	}
	if g.parts["run"] {
		all = append(all, way{"run", reaperWay, true, g.reap()})
	}
	if g.parts["whereabouts"] {
		all = append(all,
			way{"run", "reconciler", true, g.reconcile(reconciler, 0)},
			way{"run", "reconciler, no throttle", true, g.reconcile(reconciler, -1)},
			way{"run", "reconciler, no throttle, map", true, g.reconcile(reconcilerMap, -1)})
	}
	return all
}

// The builds of Whereabouts' reconciler.
const (
	reconciler    = "whereabouts-reconciler"
	reconcilerMap = "whereabouts-reconciler-map"
)

// reconcile makes a build of Whereabouts' reconciler release, as an administrator to whom API
// priority and fairness does not apply. A qps of 0 means client-go's default, as shipped, and -1
// means no limit. A failure is a result too: the reconciler gives up on lists that take 30 seconds.
func (g *poolStage) reconcile(build string, qps int) func(ctx context.Context) (cost, error) {
	return func(ctx context.Context) (cost, error) {
		path, err := assets.Path(build)
		if err != nil {
			return cost{}, err
		}
		c, err := measure(ctx, g.limit, command{path: path, args: []string{
			"-kubeconfig=" + g.cluster.Kubeconfig, "-qps=" + strconv.Itoa(qps),
		}})
		if err != nil && !errors.Is(err, errSlow) && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", errPartial, err)
		}
		return c, err
	}
}
