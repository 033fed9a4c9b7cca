package backendtest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Pods is a census.Cluster that tests can change. The zero Pods is an empty
// cluster. It is safe for concurrent use.
type Pods struct {
	mu    sync.Mutex
	pods  map[ipam.PodRef]census.Pod
	sets  []census.StatefulSet
	nodes []census.Node

	machines []census.VirtualMachine

	sandboxes []census.Sandbox // see Node

	hook  func(call string) error
	calls []string
}

// Add adds pods. A pod replaces another of the same name.
func (p *Pods) Add(pods ...census.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pods == nil {
		p.pods = make(map[ipam.PodRef]census.Pod)
	}
	for _, pod := range pods {
		p.pods[pod.Ref] = pod
	}
}

// Remove removes a pod, if it exists, and its sandboxes.
func (p *Pods) Remove(ref ipam.PodRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pods, ref)
	p.sandboxes = slices.DeleteFunc(p.sandboxes, func(s census.Sandbox) bool { return s.Pod == ref })
}

// AddSets adds StatefulSets.
func (p *Pods) AddSets(sets ...census.StatefulSet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets = append(p.sets, sets...)
}

// AddNodes adds nodes.
func (p *Pods) AddNodes(nodes ...census.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes = append(p.nodes, nodes...)
}

// AddMachines adds virtual machines.
func (p *Pods) AddMachines(machines ...census.VirtualMachine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.machines = append(p.machines, machines...)
}

// OnCall sets a hook that runs at the beginning of each call. The call is "list
// pods", "list virtual machines", "list statefulsets", "list nodes", "list sandboxes" or
// "get pod namespace/name". The hook may change the pods. If it returns an error, the call fails with it.
func (p *Pods) OnCall(hook func(call string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = hook
}

// Calls returns the calls so far, in order, and forgets them.
func (p *Pods) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = nil
	return calls
}

// listed makes the call for a list, and returns a copy of the list.
func listed[T any](ctx context.Context, p *Pods, call string, list func() []T) ([]T, error) {
	if err := p.begin(ctx, call); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(list()), nil
}

// Pods implements census.Cluster.
func (p *Pods) Pods(ctx context.Context) ([]census.Pod, error) {
	return listed(ctx, p, "list pods", func() []census.Pod {
		return slices.SortedFunc(maps.Values(p.pods), func(a, b census.Pod) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	})
}

// StatefulSets implements census.Cluster.
func (p *Pods) StatefulSets(ctx context.Context) ([]census.StatefulSet, error) {
	return listed(ctx, p, "list statefulsets", func() []census.StatefulSet { return p.sets })
}

// VirtualMachines implements census.Cluster.
func (p *Pods) VirtualMachines(ctx context.Context) ([]census.VirtualMachine, error) {
	return listed(ctx, p, "list virtual machines", func() []census.VirtualMachine { return p.machines })
}

// Nodes implements census.Cluster.
func (p *Pods) Nodes(ctx context.Context) ([]census.Node, error) {
	return listed(ctx, p, "list nodes", func() []census.Node { return p.nodes })
}

// Pod implements census.Cluster.
func (p *Pods) Pod(ctx context.Context, ref ipam.PodRef) (census.Pod, census.Presence, error) {
	if err := p.begin(ctx, "get pod "+ref.String()); err != nil {
		return census.Pod{}, census.Unknown, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod, ok := p.pods[ref]; ok {
		return pod, census.Present, nil
	}
	return census.Pod{}, census.Absent, nil
}

// begin records a call and runs the hook.
func (p *Pods) begin(ctx context.Context, call string) error {
	p.mu.Lock()
	p.calls = append(p.calls, call)
	hook := p.hook
	p.mu.Unlock()
	if hook != nil {
		if err := hook(call); err != nil {
			return err
		}
	}
	return ctx.Err()
}
