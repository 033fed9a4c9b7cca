package proxy

import "context"

// A Gate holds requests back until it is opened.
type Gate struct {
	arrived chan Request
	open    chan struct{}
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{arrived: make(chan Request, 1024), open: make(chan struct{})}
}

// Hook holds a request back and then lets it pass, even if its client is gone by then.
func (g *Gate) Hook(ctx context.Context, r Request) Action {
	select {
	case g.arrived <- r:
	case <-ctx.Done():
	}
	select {
	case <-g.open:
		return Pass()
	case <-ctx.Done():
		return Drop()
	}
}

// Arrived receives each request that the gate holds back.
func (g *Gate) Arrived() <-chan Request { return g.arrived }

// Open lets all requests pass, including future ones. It must be called once.
func (g *Gate) Open() { close(g.open) }
