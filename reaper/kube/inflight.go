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
// ipam.Unqueued neither waits nor counts, and one under ipam.Polite fails instead of waiting.
//
// A request that has no answer in time fails. The time begins when the request is sent: the
// timeout of an http.Client includes the wait, and so cannot tell what was never sent.
type InFlight struct {
	places  *semaphore.Weighted
	gate    *gate
	timeout time.Duration // from the sending of a request to the end of its answer
}

// NewInFlight returns a limit of that many requests, each of which may take so long.
func NewInFlight(most int, timeout time.Duration) InFlight {
	return InFlight{semaphore.NewWeighted(int64(most)), new(gate), timeout}
}

// Wrap returns a transport whose requests wait until there is room for them.
func (l InFlight) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) { return l.send(request, next) })
}

// send sends a request once there is room for it.
func (l InFlight) send(request *http.Request, next http.RoundTripper) (*http.Response, error) {
	leave, err := l.enter(request.Context())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsent, err)
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), l.timeout, errTimeout)
	end := func() { cancel(); leave() }
	response, err := next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		end()
		return response, timedOut(ctx, err)
	}
	l.gate.shutBy(response)
	if response.Body == nil {
		end()
		return response, nil
	}
	response.Body = leaving{response.Body, ctx, end}
	return response, nil
}

// errTimeout is the cause of a request that had no complete answer in time.
var errTimeout = errors.New("the API server did not answer in time")

// timedOut adds errTimeout to the error of a request that timed out.
func timedOut(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errTimeout) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", errTimeout, err)
	}
	return err
}

// errUnsent is the error of a request that was given up while waiting.
var errUnsent = errors.New("the request was not sent")

// enter waits until a request may be sent, and takes its place. The error is the context's, or
// says that the request is too late.
func (l InFlight) enter(ctx context.Context) (leave func(), err error) {
	turn := ipam.TurnOf(ctx)
	if turn.Unqueued {
		if shut := l.gate.shut(); shut > 0 && turn.Polite {
			return nil, &ipam.RetryAfterError{Err: errors.New("the API server asks its clients to wait"), After: shut}
		}
		return func() {}, ctx.Err()
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
	if turn.Halted != nil {
		if err := turn.Halted(); err != nil {
			l.places.Release(1)
			return nil, err
		}
	}
	return sync.OnceFunc(func() { l.places.Release(1) }), nil
}

// maxShut is the longest that one answer makes its client wait, whatever it says. It is less than
// the time that a backend allows a write without progress.
const maxShut = 10 * time.Second

// A gate is shut for as long as the API server asks its clients to wait.
type gate struct {
	mu    sync.Mutex
	until time.Time
}

// shutBy shuts the gate if an answer says when to try again. The answer then says at most maxShut,
// since client-go waits for as long as it says.
func (g *gate) shutBy(response *http.Response) {
	busy := response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if !busy || err != nil {
		return
	}
	wait := min(time.Duration(seconds)*time.Second, maxShut)
	response.Header.Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(wait); until.After(g.until) {
		g.until = until
	}
}

// shut returns for how much longer the gate is shut.
func (g *gate) shut() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Until(g.until)
}

// wait waits until the gate is open. The error is ctx's, if that ends first.
func (g *gate) wait(ctx context.Context) error {
	for {
		shut := g.shut()
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
	ctx   context.Context // of the request
	leave func()
}

// Read implements io.Reader.
func (b leaving) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		err = timedOut(b.ctx, err)
		b.leave()
	}
	return n, err
}

// Close implements io.Closer.
func (b leaving) Close() error {
	defer b.leave()
	return b.ReadCloser.Close()
}
