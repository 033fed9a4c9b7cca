package kube

import (
	"context"
	"io"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"
)

// An InFlight limits how many requests there are at the same time, so that the API server
// has room for its other clients. A request ends when its answer is read. It is safe for
// concurrent use.
//
// A read waits as long as there are as many requests as the limit, and so does a write with a
// context of Unhurried. Any other write does not wait, because its warrant would expire meanwhile,
// and the lock too. A run makes no more such writes at the same time than the limit.
type InFlight struct{ places *semaphore.Weighted }

// unhurriedKey marks a context of Unhurried.
type unhurriedKey struct{}

// Unhurried returns a context for writes that may wait, since no warrant permits them.
func Unhurried(ctx context.Context) context.Context {
	return context.WithValue(ctx, unhurriedKey{}, true)
}

// NewInFlight returns a limit of so many requests.
func NewInFlight(most int) InFlight { return InFlight{semaphore.NewWeighted(int64(most))} }

// Wrap returns a transport whose requests wait until there are fewer than the limit.
func (l InFlight) Wrap(next http.RoundTripper) http.RoundTripper { return limited{l, next} }

// limited is a transport with a limit.
type limited struct {
	InFlight
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	leave, err := l.enter(request)
	if err != nil {
		return nil, err
	}
	response, err := l.next.RoundTrip(request)
	if err != nil || response.Body == nil {
		leave()
		return response, err
	}
	response.Body = leaving{response.Body, leave}
	return response, nil
}

// enter waits until the request may be sent, and takes its place. A write that need not wait
// takes one if there is one. The error is that of the request's context.
func (l InFlight) enter(request *http.Request) (leave func(), err error) {
	if request.Method != http.MethodGet && request.Context().Value(unhurriedKey{}) == nil {
		if !l.places.TryAcquire(1) {
			return func() {}, nil
		}
	} else if err := l.places.Acquire(request.Context(), 1); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { l.places.Release(1) }), nil
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
