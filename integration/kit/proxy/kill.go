package proxy

import (
	"context"
	"fmt"
	"sync"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A Starter starts the process to be disturbed.
type Starter func() (*reap.Process, error)

// Kill starts a process, kills it at the point, as kill -9 does, and returns when all writes that
// it had sent are done: otherwise one might interfere with what the test does next. The proxy is
// reset before and afterwards. It is an error if the process ends in any other way, for example
// after fewer writes.
func Kill(p *Proxy, at Point, start Starter) error {
	here := func(r Request) bool { return r.Mutation == at.N }
	k := &killer{process: make(chan *reap.Process, 1)}
	p.Reset()
	defer p.Reset()
	p.After(Mutating, k.answered)
	if at.After {
		p.After(here, k.kill)
	} else {
		p.Before(here, k.kill)
	}
	p.Before(Mutating, k.forward)
	process, err := start()
	if err != nil {
		return err
	}
	k.process <- process
	result, err := process.Wait()
	if err != nil {
		return err
	}
	if result.ExitCode != reap.ExitedByKill {
		return fmt.Errorf("the process was not killed: it ended with exit code %d after %d writes\n%s",
			result.ExitCode, len(Writes(p)), result.Stderr)
	}
	k.pending.Wait()
	k.mu.Lock() // the hook holds it until Kill has returned
	defer k.mu.Unlock()
	return k.err
}

// A killer kills a process and counts its writes under way.
type killer struct {
	mu      sync.Mutex
	dead    bool
	err     error
	pending sync.WaitGroup
	process chan *reap.Process
}

// forward is the hook before each write.
func (k *killer) forward(context.Context, Request) Action {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		return Drop()
	}
	k.pending.Add(1)
	return Pass()
}

// answered is the hook after each write.
func (k *killer) answered(context.Context, Request) Action {
	k.pending.Done()
	return Pass()
}

// kill is the hook at the point.
func (k *killer) kill(context.Context, Request) Action {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead = true
	k.err = (<-k.process).Kill()
	return Drop()
}
