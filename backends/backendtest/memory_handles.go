package backendtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// empty handles is the pool of the handles without an address.
const emptyHandles = "handles"

// errFumbled is what a fumbled request fails with.
var errFumbled = errors.New("the second write failed")

// Begin does the first half of what the plugin's ADD does in a store with handles:
// it writes that of the sandbox. Reserve does the rest.
func (m *Memory) Begin(sandbox string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin(sandbox)
}

// begin is Begin. The second half does not look for what the first one wrote.
func (m *Memory) begin(sandbox string) {
	if m.begun[sandbox] {
		return
	}
	m.version++
	m.begun[sandbox], m.handles[sandbox] = true, m.version
}

// Fumble implements Fumbler.
func (m *Memory) Fumble() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fumbles = true
}

// settle removes the handle of a sandbox that has no address any more.
func (m *Memory) settle(sandbox string) {
	if !m.hasAddress(sandbox) {
		delete(m.handles, sandbox)
		delete(m.begun, sandbox)
	}
}

func (m *Memory) hasAddress(sandbox string) bool {
	return slices.ContainsFunc(m.records, func(e *record) bool { return e.group == sandbox })
}

// empty handles are the sandboxes of the handles without an address, in a constant
// order.
func (m *Memory) emptyHandles() []string {
	var all []string
	for _, sandbox := range slices.Sorted(maps.Keys(m.handles)) {
		if !m.hasAddress(sandbox) {
			all = append(all, sandbox)
		}
	}
	return all
}

// empty handles are the empty handles as they are listed.
func (m *Memory) emptyHandlePool() reaper.Pool {
	u := reaper.Pool{Name: emptyHandles}
	for _, sandbox := range m.emptyHandles() {
		u.Allocations = append(u.Allocations, reaper.Allocation{
			Pool: emptyHandles, Key: sandbox, EmptyHandle: true,
			Token: strconv.Itoa(m.handles[sandbox]), Owner: reaper.Owner{Sandbox: sandbox},
		})
	}
	return u
}

// handled is the backend over a Memory whose sandboxes have handles.
type handled struct{ memory }

// Release implements reaper.Backend: in one request for all entries, and in
// another one for each of their handles.
func (b handled) Release(ctx context.Context, pool string, ws []reaper.Warrant) []error {
	if pool == emptyHandles {
		return b.clear(ctx, ws)
	}
	sandboxes := make([]string, len(ws))
	for i, w := range ws {
		if r, err := w.Allocation(); err == nil {
			sandboxes[i] = r.Group
		}
	}
	errs := b.memory.Release(ctx, pool, ws)
	for i, sandbox := range sandboxes {
		if errs[i] == nil {
			errs[i] = b.settle(ctx, sandbox)
		}
	}
	return errs
}

func (b handled) settle(ctx context.Context, sandbox string) error {
	err := b.store.request(ctx, "settle "+sandbox, func() error {
		if b.store.fumbles {
			b.store.fumbles = false
			return errFumbled
		}
		b.store.settle(sandbox)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: the handle of %s: %w", reaper.ErrUnfinished, sandbox, err)
	}
	return nil
}

// clear removes handles without an address, if they are what was listed.
func (b handled) clear(ctx context.Context, ws []reaper.Warrant) []error {
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
				return fmt.Errorf("%w: it was written again", reaper.ErrChanged)
			default:
				delete(b.store.handles, r.Key)
			}
			return nil
		})
	}
	return errs
}
