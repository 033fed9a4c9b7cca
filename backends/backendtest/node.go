package backendtest

import (
	"context"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

// A Node is a census.Runtime over Pods: a cluster seen from one node, with that node's
// sandboxes.
type Node struct{ *allPods }

// An allPods is Pods under a name that is not one of its methods.
type allPods = Pods

// OnNode returns the node with the sandboxes of these pods.
func OnNode(p *Pods) Node { return Node{p} }

// Sandboxes implements census.Runtime.
func (n Node) Sandboxes(ctx context.Context) ([]census.Sandbox, error) {
	return listed(ctx, n.allPods, "list sandboxes", func() []census.Sandbox { return n.sandboxes })
}

// Boot implements census.Runtime.
func (Node) Boot() string { return "" }

// Unclaimed implements census.Runtime.
func (Node) Unclaimed() string { return "" }

// AddSandboxes adds sandboxes to the node. Remove removes those of a pod.
func (p *Pods) AddSandboxes(sandboxes ...census.Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sandboxes = append(p.sandboxes, sandboxes...)
}

// A NodeStore is a Store on a node. The container runtime decides on its allocations
// (ipam.Allocation.ByRuntime). Its Reserve makes an allocation too old for its sandbox to count
// as just starting.
type NodeStore interface {
	Store

	// ByRuntime marks the store and does nothing.
	ByRuntime()
}

// cluster returns the check's cluster in the form that the store's backend needs.
func (s *fixture) cluster() census.Cluster {
	if _, ok := s.store.(NodeStore); ok {
		return OnNode(s.pods)
	}
	return s.pods
}
