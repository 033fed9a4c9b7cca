package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// The errors of List, Release and Restore.
var (
	ErrNotInstalled = errors.New("not installed")
	ErrChanged      = errors.New("the allocation changed hands")
	ErrReturned     = errors.New("the owner came back")
	ErrKept         = errors.New("kept")
	ErrNoWarrant    = errors.New("no valid warrant")
	ErrAgain        = errors.New("not decided")
	ErrLost         = errors.New("the answer was lost")
	ErrBegun        = errors.New("its release has begun")
	ErrUnfinished   = errors.New("released, but a later run has to remove the rest")
	ErrDeleting     = errors.New("it is being deleted")
	ErrPresent      = errors.New("the store holds it already")
	ErrTaken        = errors.New("its place is taken")
)

// Deleting returns an error that wraps ErrDeleting and names the finalizers that keep an object.
func Deleting(finalizers []string) error {
	return fmt.Errorf("%w, and waits for the finalizers %s", ErrDeleting, printable.Some(finalizers))
}

// A PoolError is a pool that could not be read, or all that is under its name. The other pools are
// listed. The ledger takes errors with the same names for the same pools.
type PoolError struct {
	Pool string
	Err  error

	// Network and Range say which addresses the pool may hold, as far as its name tells. An empty network
	// may be any, and so may the addresses of a range that is not valid.
	Network string
	Range   netip.Prefix
}

// Error names the pool and the cause.
func (e *PoolError) Error() string { return e.Pool + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PoolError) Unwrap() error { return e.Err }

// An ObjectError is an object other than a pool that could not be decoded, such as a
// network attachment, or a list of such objects that could not be read. The listing is complete: what
// protects addresses protects every one that the object may name. Or it is a pool whose size is beyond what the program lists, such as a block
// with 2^64 addresses: the backend keeps all that may have to do with it, and how full the pools of
// its IP family are is unknown.
type ObjectError struct {
	Object string       // its kind and name
	Range  netip.Prefix // of such a pool; otherwise not valid

	// NotListed are networks whose pools the backend does not list. Then nothing else is wrong.
	NotListed []string

	Err error
}

// Error names the object and the cause.
func (e *ObjectError) Error() string { return e.Object + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ObjectError) Unwrap() error { return e.Err }

// A RetryAfterError is a temporary failure of a server. It wraps ErrAgain.
type RetryAfterError struct {
	Err   error
	After time.Duration // to wait before the next request; 0 if the server does not say
}

// Error returns the text of the cause.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap returns ErrAgain and the cause.
func (e *RetryAfterError) Unwrap() []error { return []error{ErrAgain, e.Err} }

// Worded returns an error with this text that wraps those of these errors that are not nil.
func Worded(text string, wraps ...error) error {
	return &wordedError{text, slices.DeleteFunc(slices.Clone(wraps), func(err error) bool { return err == nil })}
}

type wordedError struct {
	text  string
	wraps []error
}

func (e *wordedError) Error() string   { return e.text }
func (e *wordedError) Unwrap() []error { return e.wraps }

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

// Begun makes an error that decides nothing also wrap ErrBegun.
func Begun(err error) error {
	if !errors.Is(err, ErrAgain) {
		return err
	}
	return fmt.Errorf("%w, and %w", err, ErrBegun)
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

// An InputError is a mistake in the user's input: a flag, a variable, a file, a
// setting. The program finds it before its first write.
type InputError struct {
	Err  error
	Hint string // the right input; empty if the error says it
}

// BadInput returns an *InputError.
func BadInput(err error, hint string) error { return &InputError{Err: err, Hint: hint} }

// Error returns the mistake, without the hint.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }
