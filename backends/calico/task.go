package calico

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// The limits on writes of handles: how many of one block at a time, how long until
// the next one is done, and how often each. An interrupted run still writes the handles
// of a block that it has written, for as long in all.
const (
	handlesAtOnce = 8
	handleTimeout = 15 * time.Second
	handleTries   = 20
)

// A task is one call of Release or Restore for a block. It has an error for each
// warrant or record.
type task struct {
	*Backend
	store   datastore
	pool    string
	errs    []error
	pending []int // the indices of the entries without an answer
}

// newTask returns a task of n entries, all of them pending.
func newTask(b *Backend, pool string, n int) task {
	t := task{Backend: b, pool: pool, errs: make([]error, n)}
	for i := range n {
		t.pending = append(t.pending, i)
	}
	return t
}

// answer decides all pending entries with the error.
func (t *task) answer(err error) {
	for _, i := range t.pending {
		t.errs[i] = err
	}
	t.pending = nil
}

// decide decides one entry with the error.
func (t *task) decide(index int, err error) {
	t.errs[index] = err
	t.pending = slices.DeleteFunc(t.pending, func(i int) bool { return i == index })
}

// fit returns the first entries that fit into one write together with their
// handles. It returns all of them if the datastore writes handles on their own.
func fit[E any](store datastore, entries []E, handle func(E) string) []E {
	room := store.objectsPerWrite() - 1
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

// each calls do for every number below n, a few at a time.
func each(n int, do func(i int)) {
	var g errgroup.Group
	g.SetLimit(handlesAtOnce)
	for i := range n {
		g.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = g.Wait() // do returns no error
}

// pause waits before another try: 20 ms times the number of the try. It returns the
// context's error if that ends first.
func pause(ctx context.Context, try int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(try) * 20 * time.Millisecond):
		return nil
	}
}
