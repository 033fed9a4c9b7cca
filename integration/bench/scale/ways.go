package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

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
			way{"run", "reconciler", true, g.reconciler("whereabouts-reconciler", 0)},
			way{"run", "reconciler, no throttle", true, g.reconciler("whereabouts-reconciler", -1)},
			way{"run", "reconciler, no throttle, map", true, g.reconciler("whereabouts-reconciler-map", -1)})
	}
	return all
}

// floor lists what a plan has to list.
func (g *stage) floor(ctx context.Context) (cost, error) { return g.doTask(ctx, task{Lists: lists()}) }

// floorRun lists the same, and writes what a run has to write.
func (g *stage) floorRun(ctx context.Context) (cost, error) {
	pools, err := g.poolWrites()
	if err != nil {
		return cost{}, err
	}
	reservations, err := g.reservationWrites()
	if err != nil {
		return cost{}, err
	}
	return g.doTask(ctx, task{lists(), [][]write{pools, reservations}})
}

const whereaboutsPath = "/apis/whereabouts.cni.cncf.io/v1alpha1/"

// lists are the lists of a plan that are not empty.
func lists() []listing {
	return []listing{
		{"/api/v1/pods", true}, {"/api/v1/nodes", true},
		{whereaboutsPath + "ippools", false}, {whereaboutsPath + "overlappingrangeipreservations", false},
	}
}

// doTask runs a floor.
func (g *stage) doTask(ctx context.Context, t task) (cost, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return cost{}, err
	}
	if err := os.WriteFile(g.file("task.json"), data, 0o600); err != nil {
		return cost{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return cost{}, err
	}
	return measure(ctx, g.limit, self, []string{
		floorName, "-kubeconfig=" + g.kubeconfig, "-task=" + g.file("task.json"),
		"-page=" + strconv.Itoa(g.page), "-concurrency=" + strconv.Itoa(g.concurrency),
	})
}

// poolWrites is one write for each pool, which tests and removes all stale entries.
func (g *stage) poolWrites() ([]write, error) {
	type operation struct {
		Op    string                 `json:"op"`
		Path  string                 `json:"path"`
		Value *v1alpha1.IPAllocation `json:"value,omitempty"`
	}
	patches := make([][]operation, g.size.pools())
	for e := range entry(g.size.total()) {
		if !e.stale() {
			continue
		}
		path := "/spec/allocations/" + strconv.Itoa(e.offset())
		patches[e.pool()] = append(patches[e.pool()],
			operation{"test", path, &v1alpha1.IPAllocation{ContainerID: e.sandbox(), PodRef: e.podRef(), IfName: "net1"}},
			operation{Op: "remove", Path: path})
	}
	writes := make([]write, len(patches))
	for pool, patch := range patches {
		body, err := json.Marshal(patch)
		if err != nil {
			return nil, err
		}
		writes[pool] = write{
			whereaboutsPath + "namespaces/" + cluster.PoolNamespace + "/ippools/" + poolName(pool),
			[]request{{"PATCH", string(types.JSONPatchType), string(body)}},
		}
	}
	return writes, nil
}

// reservationWrites is for each stale overlapping reservation a patch that puts a
// tombstone in, and a deletion of exactly what the patch made.
func (g *stage) reservationWrites() ([]write, error) {
	var writes []write
	for e := range entry(g.size.total()) {
		if !e.stale() {
			continue
		}
		spec, err := json.Marshal(v1alpha1.OverlappingRangeIPReservationSpec{ContainerID: e.sandbox(), PodRef: e.podRef(), IfName: "net1"})
		if err != nil {
			return nil, err
		}
		id := uid(2, int(e))
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{
				"uid": id, "resourceVersion": strconv.FormatInt(g.revisions[e], 10),
				"annotations": map[string]string{"ip-reaper/spec": string(spec)},
			},
			"spec": map[string]string{"podref": "_ip-reaper/_released"},
		})
		if err != nil {
			return nil, err
		}
		options := `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"` + id + `","resourceVersion":"%s"}}`
		writes = append(writes, write{
			whereaboutsPath + "namespaces/" + cluster.PoolNamespace + "/overlappingrangeipreservations/" + e.ip().String(),
			[]request{{"PATCH", string(types.MergePatchType), string(patch)}, {"DELETE", "application/json", options}},
		})
	}
	return writes, nil
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

// reconciler has a build of Whereabouts' reconciler release, as an administrator to whom API
// priority and fairness does not apply. 0 requests a second are client-go's default, which
// is as it is shipped, and -1 are without a limit. Its failure is a result, too: it gives up
// lists that take 30 seconds.
func (g *stage) reconciler(build string, qps int) func(ctx context.Context) (cost, error) {
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
