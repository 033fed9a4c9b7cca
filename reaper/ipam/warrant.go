package ipam

import (
	"context"
	"fmt"
	"time"
)

// The longest time between the second look at an owner and the write.
const (
	// Freshness is for an allocation that a later sandbox may adopt, and for one whose token
	// says nothing about its owner.
	Freshness = 2 * time.Second

	// FreshnessNeverAdopted is for an allocation that is NeverAdopted. Whatever its pod does
	// meanwhile, the pod gets another allocation; the token tells the two apart. It is less
	// than the 30 s after which another run gets a lock that is not renewed.
	FreshnessNeverAdopted = 20 * time.Second
)

// Freshness returns how old the second look may be when the allocation is released.
func (a *Allocation) Freshness() time.Duration {
	if a.NeverAdopted() {
		return FreshnessNeverAdopted
	}
	return Freshness
}

// A Warrant is the permission to release one allocation. It expires, by the monotonic or by the
// wall clock: see Freshness. The zero Warrant permits nothing.
type Warrant struct {
	allocation *Allocation
	looked     time.Time
	by         Renewer
}

// A Renewer has given warrants, and can look at their owners again.
type Renewer interface {
	// Renew is the function Renew, for warrants that it gave.
	Renew(ctx context.Context, ws []Warrant) ([]Warrant, []error)
}

// NewWarrant returns a warrant based on a look at the allocation's owner that began at the given
// time. Only the second look of a run may call it: a test of the imports proves that.
func NewWarrant(a *Allocation, looked time.Time, by Renewer) Warrant { return Warrant{a, looked, by} }

// Allocation returns the allocation that may be released, as it was listed. A backend
// calls it right before the write. The error wraps ErrNoWarrant for the zero Warrant,
// and ErrAgain if the warrant has expired: then it is an *ExpiredError.
func (w Warrant) Allocation() (Allocation, error) {
	if w.allocation == nil || w.looked.IsZero() {
		return Allocation{}, ErrNoWarrant
	}
	if age := AgeOf(w.looked, time.Now()); age > w.allocation.Freshness() {
		return Allocation{}, &ExpiredError{age.Round(time.Millisecond)}
	}
	return *w.allocation, nil
}

// For returns the allocation of the warrant, even after it has expired; nil for the zero
// Warrant. It is not a permission.
func (w Warrant) For() *Allocation { return w.allocation }

// FirstToExpire returns when the first of some valid warrants expires.
func FirstToExpire(ws []Warrant) time.Time {
	var first time.Time
	for _, w := range ws {
		if end := w.looked.Add(w.allocation.Freshness()); first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}

// AgeOf returns how old a look is, by the clock that ran further. The monotonic clock, which
// Sub reads, stops while the machine sleeps (golang/go issue 24595), and the wall clock may be
// set back.
func AgeOf(looked, now time.Time) time.Duration {
	return max(now.Sub(looked), now.Round(0).Sub(looked.Round(0)))
}

// An ExpiredError says how old a warrant is. It wraps ErrAgain.
type ExpiredError struct{ Age time.Duration }

// Error names the age.
func (e *ExpiredError) Error() string {
	return fmt.Sprintf("%v: the second look was %v ago", ErrAgain, e.Age)
}

// Unwrap returns ErrAgain.
func (e *ExpiredError) Unwrap() error { return ErrAgain }

// Renew looks at the owners of all warrants again, in one look that begins after the
// call. It returns a fresh warrant or an error for each, in the same order. It is for stores
// whose release takes several writes. Its errors are those of the second look: they wrap
// ErrReturned, ErrKept or ErrAgain, or none of them if no later look can succeed. The error
// of the zero Warrant wraps ErrNoWarrant.
func Renew(ctx context.Context, ws []Warrant) ([]Warrant, []error) {
	fresh, errs := make([]Warrant, len(ws)), make([]error, len(ws))
	given := make(map[Renewer][]int)
	for i, w := range ws {
		if w.looked.IsZero() {
			errs[i] = ErrNoWarrant
			continue
		}
		given[w.by] = append(given[w.by], i)
	}
	for by, indices := range given {
		theirs := make([]Warrant, len(indices))
		for n, i := range indices {
			theirs[n] = ws[i]
		}
		renewed, answers := by.Renew(ctx, theirs)
		for n, i := range indices {
			fresh[i], errs[i] = renewed[n], answers[n]
		}
	}
	return fresh, errs
}
