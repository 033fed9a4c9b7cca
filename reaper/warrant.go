package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The longest time between the second look at an owner and the write.
const (
	// Freshness is for an allocation that a later sandbox may adopt, and for one whose token
	// says nothing of its owner.
	Freshness = 2 * time.Second

	// FreshnessNeverAdopted is for an allocation that is NeverAdopted. Whatever its pod does
	// meanwhile, it gets another allocation; the token tells the two apart. It is less than the
	// 30 s after which another run gets a lock that is not renewed.
	FreshnessNeverAdopted = 20 * time.Second
)

// freshness returns how old the look may be by which the allocation is released.
func (a *Allocation) freshness() time.Duration {
	if a.NeverAdopted {
		return FreshnessNeverAdopted
	}
	return Freshness
}

// A Warrant is the permission to release one orphan. Only Confirmer.Confirm and Renew
// make one. It expires, by the monotonic or by the wall clock: see Freshness. The zero
// Warrant permits nothing.
type Warrant struct {
	orphan    Orphan
	confirmed time.Time // when the second look began
	by        *Confirmer
}

// Allocation returns the allocation that may be released, as it was listed. A backend
// calls it right before the write. The error wraps ErrNoWarrant for the zero Warrant,
// and ErrAgain if the warrant has expired.
func (w Warrant) Allocation() (Allocation, error) {
	if w.confirmed.IsZero() {
		return Allocation{}, ErrNoWarrant
	}
	allocation := w.orphan.Allocation()
	if age := ageOf(w.confirmed, time.Now()); age > allocation.freshness() {
		return Allocation{}, expiredError{age.Round(time.Millisecond)}
	}
	return allocation, nil
}

// firstToExpire returns when the first of some valid warrants expires.
func firstToExpire(ws []Warrant) time.Time {
	var first time.Time
	for _, w := range ws {
		if end := w.confirmed.Add(w.orphan.allocation.freshness()); first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}

// ageOf returns how old a look is, by the clock that ran further. The monotonic clock, which
// Sub reads, stops while the machine sleeps (golang/go issue 24595), and the wall clock may be
// set back.
func ageOf(looked, now time.Time) time.Duration {
	return max(now.Sub(looked), now.Round(0).Sub(looked.Round(0)))
}

// An expiredError says how old a warrant is. It wraps ErrAgain.
type expiredError struct{ age time.Duration }

// Error names the age.
func (e expiredError) Error() string {
	return fmt.Sprintf("%v: the second look was %v ago", ErrAgain, e.age)
}

// Unwrap returns ErrAgain.
func (e expiredError) Unwrap() error { return ErrAgain }

// isLate reports whether an answer says that there was too little time for a batch.
func isLate(err error) bool {
	var expired expiredError
	return errors.As(err, &expired) || errors.Is(err, errSlow)
}

// Renew is the function Renew for one warrant.
func (w Warrant) Renew(ctx context.Context) (Warrant, error) {
	fresh, errs := Renew(ctx, []Warrant{w})
	return fresh[0], errs[0]
}

// Renew looks at the owners of all warrants again, together, by a look that begins after the
// call. It returns a fresh warrant or an error for each, in the same order. It is for stores
// whose release takes several writes. Its errors are those of Confirmer.Confirm. The error
// of the zero Warrant wraps ErrNoWarrant.
func Renew(ctx context.Context, ws []Warrant) ([]Warrant, []error) {
	fresh, errs := make([]Warrant, len(ws)), make([]error, len(ws))
	given := make(map[*Confirmer][]int)
	for i, w := range ws {
		if w.confirmed.IsZero() {
			errs[i] = ErrNoWarrant
			continue
		}
		given[w.by] = append(given[w.by], i)
	}
	for by, indices := range given {
		orphans := make([]Orphan, len(indices))
		for n, i := range indices {
			orphans[n] = ws[i].orphan
		}
		renewed, answers := by.renew(ctx, orphans)
		for n, i := range indices {
			fresh[i], errs[i] = renewed[n], answers[n]
		}
	}
	return fresh, errs
}
