package plugin

import (
	"context"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A Sandbox is one interface of one sandbox of a pod.
type Sandbox struct {
	Pod         Pod
	ContainerID string
	Interface   string
}

// An Answer is the result of the ADD for a sandbox.
type Answer struct {
	Sandbox Sandbox
	IPs     []netip.Addr
	Err     error
}

// AddAll asks for addresses for all the sandboxes, with at most atOnce plugins running at a time.
// The answers are in the same order.
func (p *Plugin) AddAll(ctx context.Context, n Network, atOnce int, sandboxes []Sandbox) []Answer {
	answers := make([]Answer, len(sandboxes))
	_ = cluster.Each(atOnce, sandboxes, func(i int, s Sandbox) error {
		ips, err := p.Add(ctx, n, s.Pod, s.ContainerID, s.Interface)
		answers[i] = Answer{s, ips, err}
		return nil
	})
	return answers
}
