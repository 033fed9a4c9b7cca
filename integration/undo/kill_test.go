package undo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A point is where a process is killed: before its nth write is forwarded, or when the
// API server has answered and the process has not heard of it.
type point struct {
	after bool
	n     int
	write string // for people
}

func (p point) String() string {
	if p.after {
		return fmt.Sprint("after ", p.n, " ", p.write)
	}
	return fmt.Sprint("before ", p.n, " ", p.write)
}

// pointsOf are the points before and after each write. Of many writes of which one is
// as good as another, such as those of events, these are the first and the last.
func pointsOf(writes []string) []point {
	var all []point
	for i, write := range writes {
		if i > 0 && i < len(writes)-1 && writes[i-1] == write && writes[i+1] == write {
			continue
		}
		all = append(all, point{false, i + 1, write}, point{true, i + 1, write})
	}
	return all
}

// turns are the points by which the stores have changed: each is one more state that a
// crash can leave them in.
func turns(writes []string) []point {
	return slices.DeleteFunc(pointsOf(writes), func(p point) bool {
		_, what, _ := strings.Cut(p.write, " ")
		what, _, _ = strings.Cut(what, " ")
		return !p.after || what == "leases" || what == "configmaps" || what == "events"
	})
}

// each plays the same at each point.
func (w *world) each(points []point, play func(p point)) {
	w.Helper()
	t := w.T
	for _, p := range points {
		t.Run(p.String(), func(t *testing.T) {
			w.T = t
			play(p)
		})
	}
	w.T = t
}

// writes are those that a process made.
func (s *scene) writes() []string {
	var writes []string
	for _, r := range s.proxy.Requests() {
		if r.Mutating() {
			writes = append(writes, strings.TrimSpace(fmt.Sprintf("%s %.30s", r, r.Name)))
		}
	}
	return writes
}

// A crash is a process that is killed at one of its writes. Those that it makes at
// the same time are carried out, if they were forwarded before, and are waited for:
// else they would come between what the test does next.
type crash struct {
	mu      sync.Mutex
	dead    bool
	pending sync.WaitGroup
	process chan *reap.Process
}

// forward is the hook before each write.
func (c *crash) forward(context.Context, proxy.Request) proxy.Action {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return proxy.Drop()
	}
	c.pending.Add(1)
	return proxy.Pass()
}

// answered is the hook after each write.
func (c *crash) answered(context.Context, proxy.Request) proxy.Action {
	c.pending.Done()
	return proxy.Pass()
}

// killed starts a process, kills it, as kill -9 does, at the point, and returns when
// the last of its writes is done.
func (s *scene) killed(at point, start func() *reap.Process) {
	s.Helper()
	c := &crash{process: make(chan *reap.Process, 1)}
	here := func(r proxy.Request) bool { return r.Mutation == at.n }
	kill := func(context.Context, proxy.Request) proxy.Action {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dead = true
		if err := (<-c.process).Kill(); err != nil {
			s.Error(err)
		}
		return proxy.Drop()
	}
	s.proxy.Reset()
	s.proxy.After(proxy.Mutating, c.answered)
	if at.after {
		s.proxy.After(here, kill)
	} else {
		s.proxy.Before(here, kill)
	}
	s.proxy.Before(proxy.Mutating, c.forward)
	p := start()
	c.process <- p
	s.wait(p, reap.ExitedByKill)
	c.pending.Wait()
	s.proxy.Reset()
}
