package backendtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// emptyHandles is the name of the pool that lists the empty handles.
const emptyHandles = "handles"

// errFumbled is the error of the write that Fumble makes fail.
var errFumbled = errors.New("the second write failed")

// Begin performs the first half of an ADD in a store with handles: it writes the
// handle of the sandbox. Reserve performs the rest.
func (m *Memory) Begin(sandbox string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin(sandbox)
}

// begin is Begin under the lock. The second half of an ADD does not check whether the handle
// still exists.
func (m *Memory) begin(sandbox string) {
	if m.started[sandbox] {
		return
	}
	m.version++
	m.started[sandbox], m.handles[sandbox] = true, m.version
}

// Fumble implements Fumbler.
func (m *Memory) Fumble() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fumbles = true
}

// removeEmptyHandle removes the handle of a sandbox that has no address.
func (m *Memory) removeEmptyHandle(sandbox string) {
	if !m.hasAddress(sandbox) {
		delete(m.handles, sandbox)
		delete(m.started, sandbox)
	}
}

func (m *Memory) hasAddress(sandbox string) bool {
	return slices.ContainsFunc(m.entries, func(e *memoryEntry) bool { return e.group == sandbox })
}

// emptyHandles returns the sandboxes of the handles without an address, in a fixed order.
func (m *Memory) emptyHandles() []string {
	var all []string
	for _, sandbox := range slices.Sorted(maps.Keys(m.handles)) {
		if !m.hasAddress(sandbox) {
			all = append(all, sandbox)
		}
	}
	return all
}

// emptyHandlePool returns the pool of the empty handles.
func (m *Memory) emptyHandlePool() ipam.Pool {
	u := ipam.Pool{Name: emptyHandles}
	for _, sandbox := range m.emptyHandles() {
		u.Allocations = append(u.Allocations, ipam.Allocation{
			Pool: emptyHandles, Key: sandbox, EmptyHandle: true,
			Token: strconv.Itoa(m.handles[sandbox]), Owner: ipam.Owner{Sandbox: sandbox},
		})
	}
	return u
}

// withHandles is the backend over a Memory whose sandboxes have handles.
type withHandles struct{ memory }

// Release implements ipam.Backend.
func (b withHandles) Release(ctx context.Context, ws []ipam.Warrant) []error {
	return poolByPool(ctx, ws, func(pool string, ws []ipam.Warrant) []error { return b.releasePool(ctx, pool, ws) })
}

// releasePool releases entries of one pool with a single request, then makes one for each of
// their handles.
func (b withHandles) releasePool(ctx context.Context, pool string, ws []ipam.Warrant) []error {
	if pool == emptyHandles {
		return b.clear(ctx, ws)
	}
	sandboxes := make([]string, len(ws))
	for i, w := range ws {
		if r, err := w.Allocation(); err == nil {
			sandboxes[i] = r.Group
		}
	}
	errs := b.memory.releasePool(ctx, pool, ws)
	for i, sandbox := range sandboxes {
		if errs[i] == nil {
			errs[i] = b.finish(ctx, sandbox)
		}
	}
	return errs
}

func (b withHandles) finish(ctx context.Context, sandbox string) error {
	err := b.store.request(ctx, "settle "+sandbox, func() error {
		if b.store.fumbles {
			b.store.fumbles = false
			return errFumbled
		}
		b.store.removeEmptyHandle(sandbox)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: the handle of %s: %w", ipam.ErrUnfinished, sandbox, err)
	}
	return nil
}

// clear removes the empty handles that are still as listed.
func (b withHandles) clear(ctx context.Context, ws []ipam.Warrant) []error {
	errs := make([]error, len(ws))
	for i, w := range ws {
		r, err := w.Allocation()
		if err != nil {
			errs[i] = err
			continue
		}
		errs[i] = b.store.request(ctx, "release "+emptyHandles, func() error {
			switch version, ok := b.store.handles[r.Key]; {
			case !ok:
			case strconv.Itoa(version) != r.Token:
				return fmt.Errorf("%w: the handle was written since it was listed", ipam.ErrChanged)
			default:
				delete(b.store.handles, r.Key)
			}
			return nil
		})
	}
	return errs
}
