package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An InFlight limits the number of concurrent requests, reads and writes alike, so that the API
// server has room for its other clients. A request ends when its answer has been read. An
// InFlight is safe for concurrent use.
//
// If an answer says when to try again, later requests wait until then. A request under
// ipam.Unqueued neither waits nor counts.
type InFlight struct {
	places *semaphore.Weighted
	gate   *gate
}

// NewInFlight returns a limit of that many requests.
func NewInFlight(most int) InFlight {
	return InFlight{semaphore.NewWeighted(int64(most)), new(gate)}
}

// Wrap returns a transport whose requests wait until there is room for them.
func (l InFlight) Wrap(next http.RoundTripper) http.RoundTripper { return limited{l, next} }

// limited is a transport with a limit.
type limited struct {
	InFlight
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	leave, err := l.enter(request.Context())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsent, err)
	}
	response, err := l.next.RoundTrip(request)
	if err != nil {
		leave()
		return response, err
	}
	l.gate.shutBy(response)
	if response.Body == nil {
		leave()
		return response, nil
	}
	response.Body = leaving{response.Body, leave}
	return response, nil
}

// errUnsent is the error of a request that was given up while waiting.
var errUnsent = errors.New("the request was not sent")

// enter waits until a request may be sent, and takes its place. The error is the context's, or
// says that the request is too late.
func (l InFlight) enter(ctx context.Context) (leave func(), err error) {
	turn := ipam.TurnOf(ctx)
	if turn.Unqueued {
		return func() {}, nil
	}
	if !turn.SendBy.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, turn.SendBy)
		defer cancel()
	}
	if err := l.gate.wait(ctx); err != nil {
		return nil, err
	}
	if err := l.places.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	// The timer of a context stops while the machine sleeps; the wall clock does not.
	if by := turn.SendBy; !by.IsZero() && !time.Now().Round(0).Before(by.Round(0)) {
		l.places.Release(1)
		return nil, context.DeadlineExceeded
	}
	return sync.OnceFunc(func() { l.places.Release(1) }), nil
}

// maxShut is the longest that one answer shuts the gate. It is less than the time that a
// backend allows a write without progress.
const maxShut = 10 * time.Second

// A gate is shut for as long as the API server asks its clients to wait.
type gate struct {
	mu    sync.Mutex
	until time.Time
}

// shutBy shuts the gate if an answer says when to try again.
func (g *gate) shutBy(response *http.Response) {
	busy := response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if !busy || err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(min(time.Duration(seconds)*time.Second, maxShut)); until.After(g.until) {
		g.until = until
	}
}

// wait waits until the gate is open. The error is ctx's, if that ends first.
func (g *gate) wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		shut := time.Until(g.until)
		g.mu.Unlock()
		if shut <= 0 {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(shut):
		}
	}
}

// leaving is the body of an answer. The request ends when the body is read or closed.
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
