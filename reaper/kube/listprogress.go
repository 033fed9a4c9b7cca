package kube

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// progressEvery is the shortest time between two lines of progress of a long phase.
const progressEvery = 2 * time.Second

// ListProgress tells how many pages of a list have come, if the list is long. It is safe
// for concurrent use.
type ListProgress struct {
	tell func(line string)
	now  func() time.Time

	mu    sync.Mutex
	lists map[string]*listed // by the path
}

// A listed is how far a list is.
type listed struct {
	pages       int
	begun, told time.Time
}

// NewListProgress returns a ListProgress that tells each line by a function.
func NewListProgress(now func() time.Time, tell func(line string)) *ListProgress {
	return &ListProgress{tell: tell, now: now, lists: make(map[string]*listed)}
}

// Wrap returns a transport whose answers to requests for pages are counted.
func (p *ListProgress) Wrap(next http.RoundTripper) http.RoundTripper { return counted{p, next} }

// counted is a transport whose answers to requests for pages are counted.
type counted struct {
	progress *ListProgress
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if request.Method != http.MethodGet || !query.Has("limit") {
		return c.next.RoundTrip(request)
	}
	first := !query.Has("continue")
	if first {
		c.progress.begin(request)
	}
	response, err := c.next.RoundTrip(request)
	if err == nil {
		c.progress.add(request)
	}
	return response, err
}

// begin starts a list, which may have been read before.
func (p *ListProgress) begin(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.lists[r.URL.Path] = &listed{begun: now, told: now}
}

// add counts a page, and tells of the list if the last line is old.
func (p *ListProgress) add(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lists[r.URL.Path]
	if l == nil {
		return
	}
	l.pages++
	now := p.now()
	if now.Sub(l.told) < progressEvery {
		return
	}
	l.told = now
	took := now.Sub(l.begun)
	p.tell(fmt.Sprintf("%s: %d pages, %.1f/s, %v elapsed", requestWords(r), l.pages, float64(l.pages)/took.Seconds(), took.Round(time.Second)))
}
