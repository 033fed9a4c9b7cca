package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Match selects requests.
type Match func(Request) bool

// Any selects every request.
func Any(Request) bool { return true }

// Mutating selects requests that may change what is stored.
func Mutating(r Request) bool { return r.Mutating() }

// On selects the requests whose String is one of those given, such as "list pods".
func On(requests ...string) Match {
	return func(r Request) bool {
		for _, s := range requests {
			if r.String() == s {
				return true
			}
		}
		return false
	}
}

// Nth selects only the nth request, counted from 1, of those that match and that no earlier hook
// has decided.
func Nth(n int64, match Match) Match {
	var seen atomic.Int64
	return func(r Request) bool { return match(r) && seen.Add(1) == n }
}

// First selects the first n requests that match.
func First(n int64, match Match) Match {
	var seen atomic.Int64
	return func(r Request) bool { return match(r) && seen.Add(1) <= n }
}

// A Hook is called for a request and decides what becomes of it. It runs on the request's own
// goroutine, so it may wait, write to the API server or kill a process while other requests go on.
// Its context ends with the proxy.
type Hook func(context.Context, Request) Action

// An Action is what the proxy does with a request. The zero Action is Pass.
type Action struct {
	drop       bool
	status     *metav1.Status
	retryAfter int // seconds
}

// Pass lets the request, or its answer, through.
func Pass() Action { return Action{} }

// Drop ends the request without an answer, like a broken connection.
func Drop() Action { return Action{drop: true} }

// Answer answers with a failure that could be the API server's.
func Answer(code int, reason metav1.StatusReason, message string) Action {
	return Action{status: &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reason,
		Message:  message,
	}}
}

// Conflict answers 409: another client wrote first.
func Conflict() Action {
	return Answer(http.StatusConflict, metav1.StatusReasonConflict, "injected: the object has been modified")
}

// Invalid answers 422, as for a JSON patch whose test failed.
func Invalid() Action {
	return Answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		"injected: the server rejected our request due to an error in our request")
}

// TooManyRequests answers 429 and asks the client to retry after a while. Less than a second leaves
// the time to the client.
func TooManyRequests(after time.Duration) Action {
	a := Answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		"injected: the server has received too many requests")
	a.retryAfter = int(after.Seconds())
	if a.retryAfter > 0 {
		a.status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(a.retryAfter)}
	}
	return a
}

// InternalError answers 500.
func InternalError() Action {
	return Answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, "injected: internal error")
}

// Forbidden answers 403, as for a role that lacks a right.
func Forbidden() Action {
	return Answer(http.StatusForbidden, metav1.StatusReasonForbidden, "injected: forbidden")
}

// Always returns a hook that does the same with every request.
func Always(a Action) Hook { return func(context.Context, Request) Action { return a } }

// response returns the failure as the API server would send it.
func (a Action) response() *http.Response {
	body, err := json.Marshal(a.status)
	if err != nil {
		panic(err) // a Status always marshals
	}
	header := http.Header{
		"Content-Type":   {"application/json"},
		"Content-Length": {strconv.Itoa(len(body))},
	}
	if a.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(a.retryAfter))
	}
	return &http.Response{
		StatusCode: int(a.status.Code), Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
