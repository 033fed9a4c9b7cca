package kube_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
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

// A logbook is a log whose lines a test receives.
type logbook chan slog.Record

func newLogbook() logbook { return make(logbook, 100) }

func (l logbook) Enabled(context.Context, slog.Level) bool { return true }
func (l logbook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l logbook) WithGroup(string) slog.Handler            { return l }

func (l logbook) Handle(_ context.Context, r slog.Record) error {
	l <- r
	return nil
}

// next returns the next line: its level, its message, and the value of one attribute.
func (l logbook) next(t *testing.T, attribute string) string {
	t.Helper()
	select {
	case r := <-l:
		text := r.Level.String() + " " + r.Message
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == attribute {
				text += ": " + a.Value.String()
			}
			return true
		})
		return text
	case <-time.After(patience):
		t.Fatal("nothing was logged")
		return ""
	}
}

// wantEmpty checks that nothing else was logged.
func (l logbook) wantEmpty(t *testing.T) {
	t.Helper()
	if len(l) > 0 {
		t.Errorf("logged: %s", l.next(t, "err"))
	}
}
