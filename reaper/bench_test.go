package reaper_test

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A fixedStore lists its pools and releases nothing.
type fixedStore []reaper.Pool

func (fixedStore) Name() string { return "fixed" }

func (s fixedStore) List(context.Context) iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) {
		for _, pool := range s {
			if !yield(pool, nil) {
				return
			}
		}
	}
}

func (fixedStore) Record(ctx context.Context, as []reaper.Allocation) ([]json.RawMessage, error) {
	return tokenRecorder{}.Record(ctx, as)
}

func (fixedStore) Compare(ctx context.Context, pool string, rs []reaper.Record) []error {
	return tokenRecorder{}.Compare(ctx, pool, rs)
}

func (fixedStore) Restore(ctx context.Context, pool string, rs []reaper.Record) []error {
	return tokenRecorder{}.Restore(ctx, pool, rs)
}

func (fixedStore) Release(_ context.Context, ws []reaper.Warrant) []error {
	return make([]error, len(ws))
}
