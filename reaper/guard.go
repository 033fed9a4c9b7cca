package reaper

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A guard says whether a run may still release what it has planned. A run may stall after its plan, as
// on a laptop that sleeps, and meanwhile another run may release an address, and a person put it back:
// then the store looks as it was listed. The zero guard refuses nothing. It is safe for concurrent use.
type guard struct {
	lock       Lock         // nil: another run may be in progress
	ledgers    ledger.Store // nil: there is none
	samePolicy func(context.Context) error

	reading sync.RWMutex // of ledgers: what loads it excludes others

	mu    sync.Mutex
	newer *ledger.Ledger // what others have saved since the plan; nil if none has
	read  bool           // newer is what ledgers loaded last
	end   error          // why nothing more is released in this run; a *ipam.HaltedError
}

// halted returns a *ipam.HaltedError if nothing may be released now. It asks no server.
func (g *guard) halted() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.end == nil && g.lock != nil {
		return g.halt(g.lock.Lapsed())
	}
	return g.end
}

// halt returns an error as a *ipam.HaltedError, and nil as it is. Unless the error wraps ErrAgain,
// nothing more is released in this run. The caller holds mu.
func (g *guard) halt(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ipam.ErrAgain):
		return &ipam.HaltedError{Err: err}
	}
	g.end = &ipam.HaltedError{Err: err, End: true}
	return g.end
}

// look asks whether the ledger and the installed policy are still what this run saved or read last. If
// others have saved the ledger, it returns that: it may keep some of the plan. The error is a
// *ipam.HaltedError. What makes the run go on without one of them in the first place is no reason to
// halt.
func (g *guard) look(ctx context.Context) (newer *ledger.Ledger, err error) {
	var policyErr error
	var policy sync.WaitGroup
	if g.samePolicy != nil {
		policy.Go(func() { policyErr = g.samePolicy(ctx) })
	}
	err = g.readLedger(ctx)
	policy.Wait()
	if err = cmp.Or(policyErr, err); err != nil && ctx.Err() != nil {
		err = lookError(ctx, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.newer, cmp.Or(g.end, g.halt(err))
}

// readLedger loads the ledger if others may have saved it.
func (g *guard) readLedger(ctx context.Context) error {
	if g.ledgers == nil {
		return nil
	}
	g.reading.RLock()
	changed, err := g.ledgers.Changed(ctx)
	g.reading.RUnlock()
	if err != nil || !changed {
		return err
	}
	g.reading.Lock()
	defer g.reading.Unlock()
	theirs, err := g.ledgers.Load(ctx)
	switch {
	case err != nil:
		return err
	case theirs.Equal(ledger.Ledger{}):
		return errors.New("the ledger was emptied while the run went on")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.newer, g.read = &theirs, true
	return nil
}

// stored returns the ledger as it was loaded last, if that was after this run had saved it.
func (g *guard) stored(saved ledger.Ledger) ledger.Ledger {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.read {
		return *g.newer
	}
	return saved
}
