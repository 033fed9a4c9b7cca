package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sethvargo/go-retry"
)

// loadLedger reads what earlier runs remember. It reports false where the
// ledger may be whole but could not be read, so that it must not be replaced.
func (r *run) loadLedger(ctx context.Context) (Ledger, bool) {
	ledger, err := r.Ledgers.Load(ctx)
	switch {
	case errors.Is(err, ErrLedgerDamaged):
		r.warn(err.Error() + "; what it remembered counts as first seen now")
	case err != nil:
		r.failAndTell(fmt.Errorf("load the ledger: %w", err))
		return Ledger{}, false
	}
	return ledger, true
}

// saveLedger remembers what has to wait. Where another run wrote in between,
// its ledger is read and judged by again.
func (r *run) saveLedger(ctx context.Context, have Ledger, decisions []Decision,
	next func(Ledger, []Decision) Ledger, judge func(Ledger) []Decision,
) {
	b := retry.WithMaxRetries(3, retry.NewConstant(100*time.Millisecond))
	err := retry.Do(ctx, b, func(ctx context.Context) error {
		want := next(have, decisions)
		if want.Equal(have) {
			return nil
		}
		err := r.Ledgers.Save(ctx, want)
		if !errors.Is(err, ErrAgain) {
			return err
		}
		theirs, loadErr := r.Ledgers.Load(ctx)
		if loadErr != nil && !errors.Is(loadErr, ErrLedgerDamaged) {
			return loadErr
		}
		if have = theirs; have.Len() > 0 {
			decisions = judge(have)
		}
		return retry.RetryableError(err)
	})
	if err != nil {
		r.failAndTell(fmt.Errorf("save the ledger: %w", err))
	}
}
