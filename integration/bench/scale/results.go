package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// results are all that was measured.
type results struct {
	Machine     string     `json:"machine"`
	Began       time.Time  `json:"began"`
	Concurrency int        `json:"concurrency"`
	Sizes       []measured `json:"sizes"`
}

// measured is what was measured with one size.
type measured struct {
	Pods  int         `json:"pods"`
	Stale int         `json:"stale"` // entries, and as many overlapping reservations
	Ways  []wayResult `json:"ways"`
	Guest *guests     `json:"guest,omitempty"`
}

// A wayResult is what was measured of one way.
type wayResult struct {
	Part  string `json:"part"`
	Name  string `json:"name"`
	Turns []cost `json:"turns"`
}

// add adds a turn.
func (m *measured) add(w way, c cost) {
	i := slices.IndexFunc(m.Ways, func(r wayResult) bool { return r.Part == w.part && r.Name == w.name })
	if i < 0 {
		i, m.Ways = len(m.Ways), append(m.Ways, wayResult{Part: w.part, Name: w.name})
	}
	m.Ways[i].Turns = append(m.Ways[i].Turns, c)
}

// of returns the medians of a way; false if it was not measured.
func (m measured) of(part, name string) (cost, bool) {
	for _, r := range m.Ways {
		if r.Part == part && r.Name == name && len(r.Turns) > 0 {
			return median(r.Turns), true
		}
	}
	return cost{}, false
}

// median returns the medians of the figures. The requests are those of the turn with the
// median wall time. What was left is the most
// that was left.
func median(turns []cost) cost {
	slower := slices.SortedStableFunc(slices.Values(turns), func(a, b cost) int { return int(a.Wall - b.Wall) })
	c := slower[len(slower)/2]
	c.Stopped = slices.ContainsFunc(turns, func(t cost) bool { return t.Stopped })
	c.Left = 0
	for _, t := range turns {
		c.Left = max(c.Left, t.Left)
	}
	c.CPU = middle(turns, func(t cost) time.Duration { return t.CPU })
	c.Peak = middle(turns, func(t cost) int { return t.Peak })
	c.Server.CPU = middle(turns, func(t cost) time.Duration { return t.Server.CPU })
	c.Server.Before = middle(turns, func(t cost) int { return t.Server.Before })
	c.Server.Peak = middle(turns, func(t cost) int { return t.Server.Peak })
	return c
}

// middle is the median of one figure, the upper one of two.
func middle[T int | time.Duration](turns []cost, of func(cost) T) T {
	var all []T
	for _, t := range turns {
		all = append(all, of(t))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// rate is how many addresses were released in a second.
func (c cost) rate() float64 { return float64(c.Released) / c.Wall.Seconds() }

// reads is how many of the requests read.
func (c cost) reads() (n int) {
	for request, count := range c.Requests {
		if strings.HasPrefix(request, "get ") || strings.HasPrefix(request, "list ") {
			n += count
		}
	}
	return n
}

// writes is how many of the requests wrote.
func (c cost) writes() (n int) {
	for _, count := range c.Requests {
		n += count
	}
	return n - c.reads()
}

// String is one line for a turn.
func (c cost) String() string {
	var requests []string
	for _, request := range slices.Sorted(maps.Keys(c.Requests)) {
		requests = append(requests, fmt.Sprintf("%d %s", c.Requests[request], request))
	}
	if c.Left > 0 {
		requests = append(requests, fmt.Sprintf("%d NOT RELEASED", c.Left))
	}
	return fmt.Sprintf("%.1f s, CPU %.1f s, %d MiB; API server CPU %.1f s, %d to %d MiB; load %.1f; %s",
		c.Wall.Seconds(), c.CPU.Seconds(), c.Peak>>10, c.Server.CPU.Seconds(), c.Server.Before>>10, c.Server.Peak>>10,
		c.Load, strings.Join(requests, ", "))
}

// tell prints the table, and writes the file if there is one.
func (r *results) tell(out io.Writer, file string) error {
	if err := r.table(out); err != nil || file == "" {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// machine describes where it was measured.
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

// loadAverage is the load of the last minute: figures are worth little beside a load that
// is not ours. 0 if it is unknown.
func loadAverage() (load float64) {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	_, _ = fmt.Sscan(string(data), &load)
	return load
}
