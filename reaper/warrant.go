package reaper

import (
	"context"
	"fmt"
	"time"
)

// Freshness is the longest time between the second look at an owner and the write.
const Freshness = 2 * time.Second

// A Warrant is the permission to release one orphan. Only Confirmer.Confirm and Renew
// make one. It expires after Freshness. The zero Warrant permits nothing.
type Warrant struct {
	orphan    Orphan
	confirmed time.Time // when the second look began
	renew     func(ctx context.Context, o Orphan) (Warrant, error)
}

// Allocation returns the allocation that may be released, as it was listed. A backend
// calls it right before the write. The error wraps ErrNoWarrant for the zero Warrant,
// and ErrAgain if the warrant has expired.
func (w Warrant) Allocation() (Allocation, error) {
	if w.confirmed.IsZero() {
		return Allocation{}, ErrNoWarrant
	}
	if age := time.Since(w.confirmed); age > Freshness {
		return Allocation{}, fmt.Errorf("%w: the second look was %v ago", ErrAgain, age.Round(time.Millisecond))
	}
	return w.orphan.allocation, nil
}

// Renew looks at the owner again and returns a fresh warrant. It is for stores whose
// release takes several writes. Its errors are those of Confirmer.Confirm.
func (w Warrant) Renew(ctx context.Context) (Warrant, error) {
	if w.confirmed.IsZero() {
		return Warrant{}, ErrNoWarrant
	}
	return w.renew(ctx, w.orphan)
}
