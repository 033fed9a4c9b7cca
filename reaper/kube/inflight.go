package kube

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
)

// An InFlight limits how many requests there are at the same time, so that the API server
// has room for its other clients. A request ends when its answer is read. A watch does not
// count: it has no end. It is safe for concurrent use.
//
// A write does not wait, because its warrant would expire meanwhile, and the lock too. A run
// makes no more such writes at the same time than the limit. A read waits as long as there are
// as many requests as the limit, and so does a write with a context of unhurried.
type InFlight struct {
	mu    sync.Mutex
	free  int             // negative while writes take more places than there were
	turns []chan struct{} // of the requests that wait, oldest first
}

// unhurriedKey marks a context of unhurried.
type unhurriedKey struct{}

// unhurried returns a context for writes that may wait, since no warrant permits them.
func unhurried(ctx context.Context) context.Context {
	return context.WithValue(ctx, unhurriedKey{}, true)
}

// NewInFlight returns a limit of so many requests.
func NewInFlight(most int) *InFlight { return &InFlight{free: most} }

// Wrap returns a transport whose requests wait until there are fewer than the limit.
func (l *InFlight) Wrap(next http.RoundTripper) http.RoundTripper { return limited{l, next} }

// limited is a transport with a limit.
type limited struct {
	limit *InFlight
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Has("watch") {
		return l.next.RoundTrip(request)
	}
	if err := l.limit.enter(request); err != nil {
		return nil, err
	}
	leave := sync.OnceFunc(l.limit.leave)
	response, err := l.next.RoundTrip(request)
	if err != nil || response.Body == nil {
		leave()
		return response, err
	}
	response.Body = leaving{response.Body, leave}
	return response, nil
}

// enter waits until the request may be sent. The error is that of the request's context.
func (l *InFlight) enter(request *http.Request) error {
	waits := request.Method == http.MethodGet || request.Context().Value(unhurriedKey{}) != nil
	l.mu.Lock()
	if l.free > 0 || !waits {
		l.free--
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{}, 1) // leave does not wait
	l.turns = append(l.turns, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-request.Context().Done():
	}
	l.mu.Lock()
	if i := slices.Index(l.turns, turn); i >= 0 {
		l.turns = slices.Delete(l.turns, i, i+1)
		l.mu.Unlock()
		return request.Context().Err()
	}
	l.mu.Unlock()
	l.leave() // its turn came at the same time
	return request.Context().Err()
}

// leave gives the place of a request that has ended to the request that waits longest.
func (l *InFlight) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free++
	if l.free > 0 && len(l.turns) > 0 {
		l.free--
		l.turns[0] <- struct{}{}
		l.turns = slices.Delete(l.turns, 0, 1)
	}
}

// leaving is the body of an answer whose request ends when it is read or closed.
type leaving struct {
	io.ReadCloser
	leave func()
}

// Read implements io.Reader.
func (b leaving) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.leave()
	}
	return n, err
}

// Close implements io.Closer.
func (b leaving) Close() error {
	defer b.leave()
	return b.ReadCloser.Close()
}
