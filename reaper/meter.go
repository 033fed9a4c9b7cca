package reaper

import (
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// progressEvery is the shortest time between two lines of progress of a long phase.
const progressEvery = 2 * time.Second

// A meter tells how far a long phase is: how many of its steps are done, how many a
// second, and since when. It is safe for concurrent use.
type meter struct {
	verb  string // in the past tense
	total int
	now   func() time.Time
	tell  func(format string, args ...any)
	begun time.Time

	mu   sync.Mutex
	done int
	told time.Time
}

// newMeter returns the meter of a phase that begins now.
func (r *run) newMeter(verb string, total int) *meter {
	now := r.Now()
	return &meter{verb: verb, total: total, now: r.Now, tell: r.progress, begun: now, told: now}
}

// add counts steps that are done, and tells of the phase if the last line is old.
func (m *meter) add(steps int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += steps
	now := m.now()
	if now.Sub(m.told) < progressEvery {
		return
	}
	m.told = now
	took := now.Sub(m.begun)
	m.tell("%s %s of %s, %.0f/s, %v elapsed", m.verb, printable.Thousands(m.done), printable.Thousands(m.total), float64(m.done)/took.Seconds(), took.Round(time.Second))
}
