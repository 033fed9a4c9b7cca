package cri

import (
	"context"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Cluster returns a cluster that is seen from one node: with the sandboxes of the node's
// container runtime, and with what an API server has. pods may be nil: a node that has lost
// its API server needs its addresses too.
//
// Without an API server, every list of objects is empty: no pod shows an address, so that
// only the runtime keeps one. The lists say nothing of what exists. They are for allocations
// that have reaper.Allocation.ByRuntime, and no rule gives such an allocation up because an
// object is missing. A single pod is Unknown, which keeps.
func Cluster(runtime *Client, pods reaper.Cluster) reaper.Runtime {
	if pods == nil {
		pods = noServer{}
	}
	return node{pods, runtime}
}

// A node is a cluster with the sandboxes of one node. It has no other methods of the cluster
// than those of reaper.Cluster: what follows the pods of a cluster knows no sandboxes.
type node struct {
	reaper.Cluster
	client *Client
}

// Sandboxes implements reaper.Runtime.
func (n node) Sandboxes(ctx context.Context) ([]reaper.Sandbox, error) {
	return n.client.Sandboxes(ctx)
}

// A noServer is what is known of a cluster without its API server.
type noServer struct{}

func (noServer) Pods(ctx context.Context) ([]reaper.Pod, error) { return nil, ctx.Err() }

func (noServer) VirtualMachines(ctx context.Context) ([]reaper.VirtualMachine, error) {
	return nil, ctx.Err()
}

func (noServer) StatefulSets(ctx context.Context) ([]reaper.StatefulSet, error) {
	return nil, ctx.Err()
}

func (noServer) Nodes(ctx context.Context) ([]reaper.Node, error) { return nil, ctx.Err() }

func (noServer) Pod(_ context.Context, ref reaper.PodRef) (reaper.Pod, reaper.Presence, error) {
	return reaper.Pod{}, reaper.Unknown, fmt.Errorf("pod %s: no API server was given: %w", ref, reaper.ErrRefused)
}
