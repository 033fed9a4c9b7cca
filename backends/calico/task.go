package calico

import (
	"context"
	"slices"
	"time"
)

// A task is one call of Release or Restore for a block.
type task struct {
	*Backend
	store   datastore
	pool    string
	errs    []error
	pending []int // indices of what is not decided
}

// answer decides whatever is pending.
func (t *task) answer(err error) {
	for _, i := range t.pending {
		t.errs[i] = err
	}
	t.pending = nil
}

// decide answers for one.
func (t *task) decide(index int, err error) {
	t.errs[index] = err
	t.pending = slices.DeleteFunc(t.pending, func(i int) bool { return i == index })
}

// fit returns as many of the entries as one write takes together with their
// handles; all of them where handles are written on their own.
func fit[E any](store datastore, entries []E, handle func(E) string) []E {
	room := store.together() - 1
	if room == 0 {
		return entries
	}
	ids := make(map[string]bool)
	for n, e := range entries {
		ids[handle(e)] = true
		if len(ids) > room {
			return entries[:n]
		}
	}
	return entries
}

// pause waits before something is tried again, longer from try to try.
func pause(ctx context.Context, try int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(try) * 20 * time.Millisecond):
		return nil
	}
}
