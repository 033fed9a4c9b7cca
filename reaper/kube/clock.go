package kube

import (
	"net/http"
	"sync/atomic"
	"time"
)

// A Clock compares the clock of this machine with the clock of the API server, which
// sends its time in the Date of every response. It is safe for concurrent use.
type Clock struct {
	now  func() time.Time
	skew atomic.Pointer[time.Duration] // nil if no response has arrived
}

// NewClock returns a clock that has seen no response yet.
func NewClock(now func() time.Time) *Clock { return &Clock{now: now} }

// Skew returns how far this machine is ahead of the API server, to about a second. A negative
// skew means that this machine is behind. Skew returns false until a response with a Date has
// arrived.
func (c *Clock) Skew() (time.Duration, bool) {
	skew := c.skew.Load()
	if skew == nil {
		return 0, false
	}
	return *skew, true
}

// Wrap returns a transport that gives the Date of each response to the clock.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return watched{c, next} }

// watched is a transport that gives the Date of each response to a clock.
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
		w.clock.skew.Store(new(w.clock.now().Sub(date).Truncate(time.Second)))
	}
	return response, nil
}
