package ipam

import (
	"errors"
	"time"
)

// A RetryAfterError is a temporary failure of a server. It wraps ErrAgain.
type RetryAfterError struct {
	Err   error
	After time.Duration // to wait before the next request; 0 if the server does not say
}

// Error returns the text of the cause.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap returns ErrAgain and the cause.
func (e *RetryAfterError) Unwrap() []error { return []error{ErrAgain, e.Err} }

// ErrRefused says that the same request would fail again: it is forbidden, or the server
// does not understand it.
var ErrRefused = errors.New("refused")

// Again makes an error of a Cluster wrap ErrAgain, unless it wraps ErrRefused.
func Again(err error) error {
	if err == nil || errors.Is(err, ErrAgain) || errors.Is(err, ErrRefused) {
		return err
	}
	return &RetryAfterError{Err: err}
}

// RetryAfter returns how long to wait before the next request to the store; 0 if the
// store does not say.
func RetryAfter(err error) time.Duration {
	var wait *RetryAfterError
	if errors.As(err, &wait) {
		return wait.After
	}
	return 0
}
