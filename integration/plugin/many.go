package plugin

import (
	"context"
	"net/netip"
	"sync"
)

// A Sandbox is one interface of one sandbox of a pod.
type Sandbox struct {
	Pod         Pod
	ContainerID string
	Interface   string
}

// An Answer is what became of the ADD for a sandbox.
type Answer struct {
	Sandbox Sandbox
	IPs     []netip.Addr
	Err     error
}

// AddAll asks for addresses for all the sandboxes, with at most so many
// plugins running at a time, and answers for each in the same order.
func (p *Plugin) AddAll(ctx context.Context, n Network, parallel int, sandboxes []Sandbox) []Answer {
	answers := make([]Answer, len(sandboxes))
	slots := make(chan struct{}, max(parallel, 1))
	var wg sync.WaitGroup
	for i, s := range sandboxes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ips, err := p.Add(ctx, n, s.Pod, s.ContainerID, s.Interface)
			answers[i] = Answer{s, ips, err}
		})
	}
	wg.Wait()
	return answers
}
