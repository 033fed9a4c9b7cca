package state

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// NodePods reads the pods of one node from the API server, and nothing else: it lists no
// virtual machines, no StatefulSets and no nodes. So it is for runs on a node, where such
// lists keep nothing. It implements reaper.Cluster.
type NodePods struct{ pods *Cluster }

// NewNodePods returns the pods of a node; raw is a RawClient.
func NewNodePods(core Group, raw rest.Interface, node string) NodePods {
	return NodePods{&Cluster{core: core.RESTClient(), raw: raw, node: node}}
}

// Pods implements reaper.Cluster for the pods of the node.
func (n NodePods) Pods(ctx context.Context) ([]reaper.Pod, error) { return n.pods.Pods(ctx) }

// Pod implements reaper.Cluster for a pod of any node.
func (n NodePods) Pod(ctx context.Context, ref reaper.PodRef) (reaper.Pod, reaper.Presence, error) {
	return n.pods.Pod(ctx, ref)
}

// VirtualMachines implements reaper.Cluster.
func (NodePods) VirtualMachines(ctx context.Context) ([]reaper.VirtualMachine, error) {
	return nil, ctx.Err()
}

// StatefulSets implements reaper.Cluster.
func (NodePods) StatefulSets(ctx context.Context) ([]reaper.StatefulSet, error) {
	return nil, ctx.Err()
}

// Nodes implements reaper.Cluster.
func (NodePods) Nodes(ctx context.Context) ([]reaper.Node, error) { return nil, ctx.Err() }
