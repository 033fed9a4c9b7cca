package main

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A cost is what one process took.
type cost struct {
	wall, cpu time.Duration
	peak      int            // resident memory in KiB
	server    serverCost     // the API server's meanwhile
	requests  map[string]int // answered by the API server meanwhile, by verb and resource
	released  int            // entries and overlapping reservations, or Calico's addresses
	left      int            // that should have been released
	stopped   bool           // at its time limit
	load      float64        // of the machine before, averaged over a minute
}

// measured is what was measured with one size.
type measured struct {
	size size
	ways []wayResult
}

// A wayResult has the measurements of one way.
type wayResult struct {
	part, name string
	turns      []cost
}

// add adds a turn.
func (m *measured) add(w way, c cost) {
	i := slices.IndexFunc(m.ways, func(r wayResult) bool { return r.part == w.part && r.name == w.name })
	if i < 0 {
		i, m.ways = len(m.ways), append(m.ways, wayResult{part: w.part, name: w.name})
	}
	m.ways[i].turns = append(m.ways[i].turns, c)
}

// median returns the turn with the median wall time, but with the most that any turn left.
func (r wayResult) median() cost {
	slower := slices.SortedStableFunc(slices.Values(r.turns), func(a, b cost) int { return int(a.wall - b.wall) })
	c := slower[len(slower)/2]
	for _, t := range r.turns {
		c.left, c.stopped = max(c.left, t.left), c.stopped || t.stopped
	}
	return c
}

// rate returns how many addresses were released per second.
func (c cost) rate() float64 { return float64(c.released) / c.wall.Seconds() }

// asked returns how many requests read, and how many wrote.
func (c cost) asked() (reads, writes int) {
	for request, count := range c.requests {
		if strings.HasPrefix(request, "get ") || strings.HasPrefix(request, "list ") {
			reads += count
		} else {
			writes += count
		}
	}
	return reads, writes
}

// String returns one line for a turn.
func (c cost) String() string {
	var requests []string
	for _, request := range slices.Sorted(maps.Keys(c.requests)) {
		requests = append(requests, fmt.Sprintf("%d %s", c.requests[request], request))
	}
	if c.left > 0 {
		requests = append(requests, fmt.Sprintf("%d NOT RELEASED", c.left))
	}
	return fmt.Sprintf("%.1f s, CPU %.1f s, %d MiB; API server CPU %.1f s, %d to %d MiB; load %.1f; %s",
		c.wall.Seconds(), c.cpu.Seconds(), c.peak>>10, c.server.cpu.Seconds(), c.server.before>>10, c.server.peak>>10,
		c.load, strings.Join(requests, ", "))
}

// machine describes the machine.
func machine() string {
	model := "unknown CPU"
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
		}
	}
	return fmt.Sprintf("%s/%s, %d CPUs, %s, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model, runtime.Version())
}

// loadAverage returns the load of the last minute; 0 if unknown. Figures are worth little if the
// machine has other load.
func loadAverage() (load float64) {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	_, _ = fmt.Sscan(string(data), &load)
	return load
}
