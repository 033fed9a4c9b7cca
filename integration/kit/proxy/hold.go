package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A Held is a process that is waiting for the answer to one of its requests.
type Held struct {
	Request Request

	process *reap.Process
	open    func()
	ended   chan struct{}
	result  reap.Result
	err     error
}

// Hold resets the proxy, starts a process and returns when its first matching request is held back.
// Later requests pass. It is an error if the process ends without a matching request.
func Hold(p *Proxy, match Match, start Starter) (*Held, error) {
	gate := NewGate()
	p.Reset()
	p.Before(Nth(1, match), gate.Hook)
	process, err := start()
	if err != nil {
		return nil, err
	}
	h := &Held{process: process, open: sync.OnceFunc(gate.Open), ended: make(chan struct{})}
	go func() {
		defer close(h.ended)
		h.result, h.err = process.Wait()
	}()
	select {
	case h.Request = <-gate.Arrived():
		return h, nil
	case <-h.ended:
		return nil, errors.Join(h.err, fmt.Errorf("the process ended with exit code %d before the request that was to be held\n%s",
			h.result.ExitCode, h.result.Stderr))
	}
}

// Open lets the request go on, even if the process has ended by then.
func (h *Held) Open() { h.open() }

// Signal sends the process a signal.
func (h *Held) Signal(sig os.Signal) error { return h.process.Signal(sig) }

// Wait waits for the end of the process.
func (h *Held) Wait() (reap.Result, error) {
	<-h.ended
	return h.result, h.err
}

// Finish lets the request go on and waits for the end of the process.
func (h *Held) Finish() (reap.Result, error) {
	h.Open()
	return h.Wait()
}

// Stop starts a process and calls stop when its first matching request is held back. It lets the
// request go on once the process has ended: a write is then carried out after its process has given
// up on it. Stop returns when that write is done.
func Stop(p *Proxy, match Match, start Starter, stop func(*Held) error) (reap.Result, error) {
	h, err := Hold(p, match, start)
	if err != nil {
		return reap.Result{}, err
	}
	written := make(chan struct{})
	p.After(Nth(1, func(r Request) bool { return r.Number == h.Request.Number }),
		func(context.Context, Request) Action {
			close(written)
			return Pass()
		})
	if err := stop(h); err != nil {
		return reap.Result{}, err
	}
	result, err := h.Wait()
	h.Open()
	if h.Request.Mutating() {
		<-written
	}
	return result, err
}
