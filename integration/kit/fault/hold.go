package fault

import (
	"errors"
	"fmt"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A Held is a process that is waiting for the answer to one of its requests.
type Held struct {
	open   func()
	ended  chan struct{}
	result reap.Result
	err    error
}

// Hold resets the proxy, starts a process and returns when its first matching request is held back.
// Later requests pass. It is an error if the process ends without a matching request.
func Hold(p *proxy.Proxy, match proxy.Match, start Start) (*Held, error) {
	gate := proxy.NewGate()
	p.Reset()
	p.Before(proxy.Nth(1, match), gate.Hook)
	process, err := start()
	if err != nil {
		return nil, err
	}
	h := &Held{open: gate.Open, ended: make(chan struct{})}
	go func() {
		defer close(h.ended)
		h.result, h.err = process.Wait()
	}()
	select {
	case <-gate.Arrived():
		return h, nil
	case <-h.ended:
		return nil, errors.Join(h.err, fmt.Errorf("the process ended with exit code %d before the request that was to be held\n%s",
			h.result.ExitCode, h.result.Stderr))
	}
}

// Finish lets the request go on and waits for the end of the process.
func (h *Held) Finish() (reap.Result, error) {
	h.open()
	<-h.ended
	return h.result, h.err
}
