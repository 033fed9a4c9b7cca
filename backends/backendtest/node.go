package backendtest

import (
	"context"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

// A Node is a census.Runtime over Pods: a cluster seen from one node, with that node's sandboxes.
type Node struct{ *allPods }

// An allPods is Pods, embedded under a name that none of its methods has.
type allPods = Pods

// OnNode returns a node with the sandboxes of these pods.
func OnNode(p *Pods) Node { return Node{p} }

// Sandboxes implements census.Runtime.
func (n Node) Sandboxes(ctx context.Context) ([]census.Sandbox, error) {
	return listed(ctx, n.allPods, "list sandboxes", func() []census.Sandbox { return n.sandboxes })
}

// AddSandboxes adds sandboxes to the node. Remove removes those of a pod.
func (p *Pods) AddSandboxes(sandboxes ...census.Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sandboxes = append(p.sandboxes, sandboxes...)
}

// A NodeStore is a Store on a node. The container runtime decides about its allocations
// (ipam.Allocation.ByRuntime). Its Reserve makes allocations too old for the engine to take for
// those of a starting sandbox.
type NodeStore interface {
	Store

	// ByRuntime marks the store and does nothing.
	ByRuntime()
}

// cluster returns the cluster of the check, as the store's backend needs it.
func (s *fixture) cluster() census.Cluster {
	if _, ok := s.store.(NodeStore); ok {
		return OnNode(s.pods)
	}
	return s.pods
}
