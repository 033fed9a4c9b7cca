package kube

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// progressEvery is the shortest time between two lines of progress of a long phase.
const progressEvery = 2 * time.Second

// ListProgress tells how many pages of a list have come, or how much of an answer with a
// whole list, if the list is long. It is safe for concurrent use.
type ListProgress struct {
	tell func(line string)
	now  func() time.Time

	mu    sync.Mutex
	lists map[string]*listed // by the path
}

// A listed is how far a list is.
type listed struct {
	pages       int
	bytes       int64 // of a list that has no pages
	begun, told time.Time
}

// NewListProgress returns a ListProgress that tells each line by a function.
func NewListProgress(now func() time.Time, tell func(line string)) *ListProgress {
	return &ListProgress{tell: tell, now: now, lists: make(map[string]*listed)}
}

// Wrap returns a transport whose answers to requests for lists are counted.
func (p *ListProgress) Wrap(next http.RoundTripper) http.RoundTripper { return counted{p, next} }

// counted is a transport whose answers to requests for lists are counted.
type counted struct {
	progress *ListProgress
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	paged := query.Has("limit")
	if request.Method != http.MethodGet || !paged && !isWholeList(request) {
		return c.next.RoundTrip(request)
	}
	if !query.Has("continue") {
		c.progress.begin(request)
	}
	response, err := c.next.RoundTrip(request)
	switch {
	case err != nil:
	case paged:
		c.progress.add(request, 0)
	default:
		response.Body = countedBody{response.Body, c.progress, request}
	}
	return response, err
}

// isWholeList reports whether a request is for all objects of a resource at once.
func isWholeList(r *http.Request) bool {
	return r.URL.RawQuery == "" && strings.HasPrefix(requestWords(r), "list ")
}

// countedBody is an answer with a whole list, whose bytes are counted.
type countedBody struct {
	io.ReadCloser
	progress *ListProgress
	request  *http.Request
}

// Read implements io.Reader.
func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.progress.add(b.request, n)
	return n, err
}

// begin starts a list, which may have been read before.
func (p *ListProgress) begin(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.lists[r.URL.Path] = &listed{begun: now, told: now}
}

// add counts a page, or bytes of a whole list, and tells of the list if the last line is
// old.
func (p *ListProgress) add(r *http.Request, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lists[r.URL.Path]
	if l == nil {
		return
	}
	l.pages, l.bytes = l.pages+1, l.bytes+int64(bytes)
	now := p.now()
	if now.Sub(l.told) < progressEvery {
		return
	}
	l.told = now
	took := now.Sub(l.begun)
	come := fmt.Sprintf("%d pages, %.1f/s", l.pages, float64(l.pages)/took.Seconds())
	if mib := float64(l.bytes) / (1 << 20); mib > 0 {
		come = fmt.Sprintf("%.0f MiB, %.1f MiB/s", mib, mib/took.Seconds())
	}
	p.tell(fmt.Sprintf("%s: %s, %v elapsed", requestWords(r), come, took.Round(time.Second)))
}
