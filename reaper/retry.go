package reaper

import (
	"errors"
	"time"
)

// A RetryAfterError is an ErrAgain of a server that failed for a passing reason, and
// may say how long to wait before the next request.
type RetryAfterError struct {
	Err   error
	After time.Duration // 0 where the server does not say
}

// Error returns the text of the cause.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap returns ErrAgain and the cause.
func (e *RetryAfterError) Unwrap() []error { return []error{ErrAgain, e.Err} }

// ErrRefused says that the same question will meet the same answer: it is forbidden,
// or makes no sense to the server.
var ErrRefused = errors.New("refused")

// again marks an error of a Cluster as ErrAgain, unless asking again cannot help.
func again(err error) error {
	if err == nil || errors.Is(err, ErrAgain) || errors.Is(err, ErrRefused) {
		return err
	}
	return &RetryAfterError{Err: err}
}

// retryAfter returns how long the store wants its next request to wait; 0 where it
// does not say.
func retryAfter(err error) time.Duration {
	var wait *RetryAfterError
	if errors.As(err, &wait) {
		return wait.After
	}
	return 0
}
