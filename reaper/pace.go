package reaper

import (
	"context"
	"slices"
	"sync"
)

// A pace says how many pools of a backend are released at the same time. The requests of a
// slow API server wait for each other. If there are so many that warrants expire, all of them
// do, and the same number would fail again. So the pace becomes half of what it was after an
// attempt that was late. It rises by one when a full set of attempts came in on time. It is safe for concurrent use. A nil pace is not limited.
type pace struct {
	most  int
	limit func(requests int) // tells the backend the pace; nil if it needs no limit

	mu      sync.Mutex
	now     int             // pools at the same time
	busy    int             // more than now for a while after it has become less
	inTime  int             // attempts in time, since the pace changed
	slowed  int             // how often it became half
	waiting []chan struct{} // oldest first
}

// newPace returns a pace of at most so many pools, and tells the backend.
func newPace(most int, limit func(requests int)) *pace {
	p := &pace{most: most, limit: limit}
	p.set(most)
	return p
}

// set changes the pace.
func (p *pace) set(now int) {
	p.now, p.inTime = now, 0
	if p.limit != nil {
		p.limit(now)
	}
}

// enter waits for the turn of an attempt, and returns what leave needs. The error is that of
// the context.
func (p *pace) enter(ctx context.Context) (entered int, err error) {
	if p == nil || ctx.Err() != nil {
		return 0, ctx.Err()
	}
	turn := make(chan struct{}, 1) // admit does not wait
	p.mu.Lock()
	p.waiting = append(p.waiting, turn)
	p.admit()
	p.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		return p.slowed, nil
	}
	if i := slices.Index(p.waiting, turn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return 0, err
	}
	p.busy-- // its turn came at the same time
	p.admit()
	return 0, err
}

// leave ends an attempt, which was late or in time. It reports whether the next attempt may
// have more time, because fewer run beside it.
func (p *pace) leave(entered int, late bool) (slower bool) {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	switch {
	case late && entered == p.slowed && p.atOnce() > 1:
		p.slowed++
		p.set(p.atOnce() / 2)
	case !late:
		if p.inTime++; p.inTime >= p.now && p.now < p.most {
			p.set(p.now + 1)
		}
	}
	p.admit()
	return entered != p.slowed
}

// atOnce returns how many attempts ran until one has left. What is late although it ran alone
// gets no more time from a slower pace, unless the backend makes fewer requests for it.
func (p *pace) atOnce() int {
	if p.limit != nil {
		return p.now
	}
	return min(p.now, p.busy+1)
}

// admit lets attempts begin, as many as the pace allows.
func (p *pace) admit() {
	for p.busy < p.now && len(p.waiting) > 0 {
		p.busy++
		p.waiting[0] <- struct{}{}
		p.waiting = p.waiting[1:]
	}
}
