package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A FirstAnswer watches the requests to an API server until the first answer comes. A
// server that accepts connections and never answers would otherwise hold up a run without a
// word until its timeout. After the first answer it does nothing: a slow list is no reason
// to give up. It is safe for concurrent use.
type FirstAnswer struct {
	Server string // for the error

	// Tell is called after each Interval without an answer, with a request that waits,
	// such as "list pods", and for how long the program has waited.
	Tell     func(request string, waited time.Duration)
	Interval time.Duration

	// Limit is how long after the first request all that have no answer fail, and all
	// later ones too.
	Limit time.Duration

	mu       sync.Mutex
	answered bool
	failed   error // set after Limit
	waited   time.Duration
	waiting  []*waitingRequest // oldest first
	telling  *time.Timer       // nil before the first request
	limiting *time.Timer
}

// A waitingRequest has no answer yet.
type waitingRequest struct {
	what   string
	cancel context.CancelCauseFunc
}

// Wrap returns a transport whose requests are watched.
func (a *FirstAnswer) Wrap(next http.RoundTripper) http.RoundTripper {
	return awaited{a, next}
}

// awaited is a transport whose requests are watched.
type awaited struct {
	first *FirstAnswer
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w awaited) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	mine := &waitingRequest{requestWords(request), cancel}
	if done, err := w.first.begin(mine); err != nil || done {
		cancel(nil)
		if err != nil {
			return nil, err
		}
		return w.next.RoundTrip(request)
	}
	response, err := w.next.RoundTrip(request.WithContext(ctx))
	if failed := w.first.end(mine, err == nil); err != nil {
		cancel(nil)
		if failed != nil && request.Context().Err() == nil {
			return nil, failed
		}
		return nil, err
	}
	response.Body = cancelling{response.Body, cancel}
	return response, nil
}

// begin adds a request to those that wait. It reports true if there is nothing to wait
// for any more, and returns an error if the server was given up.
func (a *FirstAnswer) begin(r *waitingRequest) (done bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered || a.failed != nil {
		return a.answered, a.failed
	}
	a.waiting = append(a.waiting, r)
	if a.telling == nil {
		a.telling = time.AfterFunc(a.Interval, a.tell)
		a.limiting = time.AfterFunc(a.Limit, a.giveUp)
	}
	return false, nil
}

// end removes a request from those that wait. It returns the error of a server that was
// given up.
func (a *FirstAnswer) end(r *waitingRequest, answered bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, other := range a.waiting {
		if other == r {
			a.waiting = append(a.waiting[:i:i], a.waiting[i+1:]...)
			break
		}
	}
	if answered && a.failed == nil {
		a.answered = true
		a.telling.Stop()
		a.limiting.Stop()
	}
	return a.failed
}

// tell tells of the oldest request, if one waits.
func (a *FirstAnswer) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered || a.failed != nil {
		return
	}
	a.waited += a.Interval
	if a.waited >= a.Limit {
		return
	}
	if len(a.waiting) > 0 {
		a.Tell(a.waiting[0].what, a.waited)
	}
	a.telling.Reset(a.Interval)
}

// giveUp ends every request that waits.
func (a *FirstAnswer) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered {
		return
	}
	a.telling.Stop()
	a.failed = silentError{a.Server, a.Limit}
	for _, r := range a.waiting {
		r.cancel(a.failed)
	}
}

// A silentError says that a server was given up. No request is tried again.
type silentError struct {
	server string
	limit  time.Duration
}

// Error names the server.
func (e silentError) Error() string {
	return fmt.Sprintf("the API server %s did not answer within %v", e.server, e.limit)
}

// cancelling is a body whose context ends when it is closed.
type cancelling struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (c cancelling) Close() error {
	defer c.cancel(nil)
	return c.ReadCloser.Close()
}

// verbs are the words for the methods of requests for one object.
var verbs = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// requestWords says what a request asks of the API server: "list pods".
func requestWords(r *http.Request) string {
	at := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case at[0] == "api" && len(at) > 2:
		at = at[2:]
	case at[0] == "apis" && len(at) > 3:
		at = at[3:]
	default:
		return verbs[r.Method] + " " + r.URL.Path
	}
	if at[0] == "namespaces" && len(at) > 2 {
		at = at[2:]
	}
	if r.Method == http.MethodGet && len(at) == 1 {
		return "list " + at[0]
	}
	return verbs[r.Method] + " " + strings.Join(at, " ")
}
