package reaper

import (
	"context"
	"fmt"
	"time"
)

// Freshness is the longest time between the second look at an owner and the
// write that rests on it.
const Freshness = 2 * time.Second

// A Warrant permits the release of one allocation, for as long as Freshness.
// Only Confirm and Renew make one. The zero Warrant permits nothing.
type Warrant struct {
	orphan    Orphan
	confirmed time.Time // when the look began
	renew     func(ctx context.Context, o Orphan) (Warrant, error)
}

// Allocation returns what may be released, as it was listed. A backend calls
// it just before the write: it returns an error that wraps ErrNoWarrant for the
// zero Warrant, and one that wraps ErrAgain when the warrant has expired.
func (w Warrant) Allocation() (Allocation, error) {
	if w.confirmed.IsZero() {
		return Allocation{}, ErrNoWarrant
	}
	if age := time.Since(w.confirmed); age > Freshness {
		return Allocation{}, fmt.Errorf("%w: the owner was confirmed gone %v ago", ErrAgain, age.Round(time.Millisecond))
	}
	return w.orphan.allocation, nil
}

// Renew looks at the owner again, now, and returns a fresh warrant. It is for
// stores that need a look between two writes. Its errors are those of
// Confirmer.Confirm.
func (w Warrant) Renew(ctx context.Context) (Warrant, error) {
	if w.confirmed.IsZero() {
		return Warrant{}, ErrNoWarrant
	}
	return w.renew(ctx, w.orphan)
}
