package kube

import (
	"net/http"
	"sync"
	"time"
)

// A Clock tells how far the clock of this machine is from that of the API server,
// by the Date that each of its answers has. It is safe for concurrent use.
type Clock struct {
	now func() time.Time

	mu        sync.Mutex
	clockSkew time.Duration
	known     bool
}

// NewClock returns a clock that has seen no answer.
func NewClock(now func() time.Time) *Clock { return &Clock{now: now} }

// ClockSkew returns by how much this machine is ahead of the API server, which is
// negative where it is behind. It is right to about a second, and reports false
// before there was an answer that tells.
func (c *Clock) Skew() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clockSkew, c.known
}

// Wrap has the answers that come through a transport be looked at.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return watched{c, next} }

// watched is a transport whose answers a clock looks at.
type watched struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w watched) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		w.clock.mu.Lock()
		defer w.clock.mu.Unlock()
		w.clock.clockSkew, w.clock.known = w.clock.now().Sub(date).Truncate(time.Second), true
	}
	return response, nil
}
