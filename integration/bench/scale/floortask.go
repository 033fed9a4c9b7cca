package main

import (
	"context"
	"encoding/json"
	"os"
	"strconv"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// floor lists what a plan has to list.
func (g *poolStage) floor(ctx context.Context) (cost, error) {
	return g.doTask(ctx, task{Lists: lists()})
}

// floorRun lists the same, and writes what a run has to write.
func (g *poolStage) floorRun(ctx context.Context) (cost, error) {
	pools, err := g.poolWrites()
	if err != nil {
		return cost{}, err
	}
	reservations, err := g.reservationWrites()
	if err != nil {
		return cost{}, err
	}
	return g.doTask(ctx, task{Lists: lists(), Stages: [][]write{pools, reservations}})
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
	return measure(ctx, g.limit, command{path: self, args: []string{
		floorName, "-kubeconfig=" + g.kubeconfig, "-task=" + g.file("task.json"),
		"-page=" + strconv.Itoa(g.page), "-concurrency=" + strconv.Itoa(g.concurrency),
	}})
}

// poolWrites is one write for each pool, which tests and removes all stale entries.
func (g *poolStage) poolWrites() ([]write, error) {
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
func (g *poolStage) reservationWrites() ([]write, error) {
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
