package run_test

import (
	"sync"
	"time"
)

// A clock shows the time that the test sets. It may be used concurrently.
type clock struct {
	mu   sync.Mutex
	time time.Time
}

// newClock returns a clock that shows noon.
func newClock() *clock { return &clock{time: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

// pass moves the clock forward or back.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
}
