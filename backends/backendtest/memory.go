package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Memory is a store in memory, in which every write compares and swaps.
//
// There are four kinds, by what happens when a pod gets a new sandbox:
//
//   - NewMemory: the pod's entry is adopted, and its token changes, as in the
//     pools of Whereabouts;
//   - NewTwoStep: the pod's entry is adopted and nothing is written, as in the
//     overlapping-range reservations of Whereabouts. The backend has to put a
//     tombstone in the owner's place, and then look at the owner again. Each
//     address is a pool;
//   - NewForgetful: the sandbox gets another address;
//   - NewHandled: the same, and entries say so and tell their age, as in Calico.
//     Those of one sandbox are bound by its handle, which is written before its
//     first address and removed by a request of its own after the last. A handle
//     without addresses is a empty handle, in a pool of its own.
type Memory struct {
	name    string
	twoStep bool
	forgets bool
	handled bool

	mu      sync.Mutex
	hook    func(request string) error
	now     func() time.Time
	pools   []string
	records []*record
	version int
	handles map[string]int  // by sandbox: the version of the last write
	begun   map[string]bool // the sandboxes whose ADD has written its handle
	fumbles bool
}

// A record is one entry.
type record struct {
	pool, key string
	ip        netip.Addr
	owner     reaper.Owner // as it is stored
	sandbox   string       // that has the address, stored or not
	version   int          // of the last write
	created   time.Time    // where the store tells
	group     string       // where sandboxes have entries of their own
	buried    bool
	junk      string
}

// ErrLost makes a request take effect and its answer get lost, when it comes
// from the hook.
var ErrLost = errors.New("the answer was lost")

// NewMemory returns an empty store whose backend has that name.
func NewMemory(name string) *Memory { return &Memory{name: name} }

// NewTwoStep returns one in which adoptions leave no trace.
func NewTwoStep(name string) *Memory { return &Memory{name: name, twoStep: true} }

// NewForgetful returns one in which nothing is adopted.
func NewForgetful(name string) *Memory { return &Memory{name: name, forgets: true} }

// NewHandled returns one in which nothing is adopted, and sandboxes have handles.
func NewHandled(name string) *Memory {
	return &Memory{
		name: name, forgets: true, handled: true, now: time.Now,
		handles: make(map[string]int), begun: make(map[string]bool),
	}
}

// SetClock sets by what a store with handles tells the age of entries; else it is
// time.Now.
func (m *Memory) SetClock(now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = now
}

// OnRequest sets what happens at the beginning of each request of the backend:
// "list", "release pool", with two steps "bury pool", "remove pool", "restore
// pool", and with handles "settle sandbox". The hook may change the store; an
// error is what the request fails with.
func (m *Memory) OnRequest(hook func(request string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

// Backend implements Store.
func (m *Memory) Backend() reaper.Backend {
	switch {
	case m.twoStep:
		return twoSteps{memory{m}}
	case m.handled:
		return handled{memory{m}}
	default:
		return memory{m}
	}
}

// Reserve implements Store.
func (m *Memory) Reserve(pool string, owner reaper.Owner) (reaper.Allocation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.records {
		mine := e.owner.Pod == owner.Pod && e.owner.Interface == owner.Interface && m.within(e, pool)
		if !mine || e.buried || m.forgets {
			continue
		}
		e.sandbox = owner.Sandbox
		if !m.twoStep {
			e.owner = owner
			m.wrote(e)
		}
		return e.allocation(), nil
	}
	network := m.network(pool)
	for ip := network.Addr().Next(); ; ip = ip.Next() {
		if !network.Contains(ip.Next()) {
			return reaper.Allocation{}, fmt.Errorf("pool %s is full", pool)
		}
		if slices.ContainsFunc(m.records, func(e *record) bool { return e.ip == ip }) {
			continue
		}
		e := &record{pool: pool, key: strconv.Itoa(int(ip.As4()[3])), ip: ip, owner: owner, sandbox: owner.Sandbox}
		if m.twoStep {
			e.pool, e.key = pool+"/"+ip.String(), ip.String()
			e.owner.UID = "" // it would become wrong unnoticed
		}
		if m.handled {
			m.begin(owner.Sandbox)
			e.group, e.created = owner.Sandbox, m.now()
		}
		m.wrote(e)
		m.records = append(m.records, e)
		return e.allocation(), nil
	}
}

// Free implements Store.
func (m *Memory) Free(pool string, owner reaper.Owner) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = slices.DeleteFunc(m.records, func(e *record) bool {
		return m.within(e, pool) && e.sandbox == owner.Sandbox && e.owner.Interface == owner.Interface
	})
	m.settle(owner.Sandbox)
	return nil
}

// Rename makes an entry name another pod, as nothing but a mistake does.
func (m *Memory) Rename(r reaper.Allocation, pod reaper.PodRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.find(r); e != nil {
		e.owner.Pod = pod
		m.wrote(e)
	}
}

// Snapshot implements Store.
func (m *Memory) Snapshot() (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	snapshot := make(map[string]string, len(m.records))
	for _, e := range m.records {
		text := e.String()
		if _, ok := m.handles[e.group]; e.group != "" && !ok {
			text += " without a handle"
		}
		snapshot[Place(reaper.Allocation{Pool: e.pool, Key: e.key})] = text
	}
	for _, sandbox := range m.emptyHandles() {
		snapshot[Place(reaper.Allocation{Pool: emptyHandles, Key: sandbox})] = "a handle"
	}
	return snapshot, nil
}

// Spoil implements Spoiler.
func (m *Memory) Spoil(pool string) (reaper.Allocation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := &record{pool: pool, key: fmt.Sprintf("junk-%d", m.version), junk: "junk"}
	if m.twoStep {
		e.pool += "/" + e.key
	}
	m.wrote(e)
	m.records = append(m.records, e)
	return e.allocation(), nil
}

// network returns the range of a pool: the nth pool has 10.n.0.0/24.
func (m *Memory) network(pool string) netip.Prefix {
	n := slices.Index(m.pools, pool)
	if n < 0 {
		n = len(m.pools)
		m.pools = append(m.pools, pool)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n)}), 24)
}

// within reports whether the entry is of the pool.
func (m *Memory) within(e *record, pool string) bool {
	return e.pool == pool || m.twoStep && strings.HasPrefix(e.pool, pool+"/")
}

// wrote gives an entry a version that no other ever had.
func (m *Memory) wrote(e *record) {
	m.version++
	e.version = m.version
}

// find returns the entry at the place of the allocation, or nil.
func (m *Memory) find(r reaper.Allocation) *record {
	i := slices.IndexFunc(m.records, func(e *record) bool { return e.pool == r.Pool && e.key == r.Key })
	if i < 0 {
		return nil
	}
	return m.records[i]
}

// String returns all of the entry but its version. It is called often.
func (e *record) String() string {
	o := e.owner
	return strings.Join([]string{
		e.ip.String(), o.Pod.String(), o.UID, o.Sandbox, o.Interface, o.Node,
		"of", e.sandbox, strconv.FormatBool(e.buried), e.junk,
	}, " ")
}

// allocation is the entry as it is listed.
func (e *record) allocation() reaper.Allocation {
	r := reaper.Allocation{
		Pool: e.pool, Key: e.key, IP: e.ip, Owner: e.owner,
		Token: strconv.Itoa(e.version), Interrupted: e.buried,
		Created: e.created, Group: e.group, SandboxOwned: e.group != "",
	}
	if e.junk != "" {
		r.Unreadable = "it is " + e.junk
	}
	return r
}

// pools are the records as they are listed, in a constant order.
func (m *Memory) listed() []reaper.Pool {
	pools := make(map[string]*reaper.Pool)
	var names []string
	for _, e := range m.records {
		u := pools[e.pool]
		if u == nil {
			u = &reaper.Pool{Name: e.pool, Network: "-"}
			if !m.twoStep {
				u.Range, u.Capacity = m.network(e.pool), big.NewInt(254)
			}
			pools[e.pool] = u
			names = append(names, e.pool)
		}
		u.Allocations = append(u.Allocations, e.allocation())
	}
	slices.Sort(names)
	all := make([]reaper.Pool, len(names))
	for i, name := range names {
		all[i] = *pools[name]
	}
	if left := m.emptyHandlePool(); len(left.Allocations) > 0 {
		all = append(all, left)
	}
	return all
}

// request is one request of a backend: the hook, and then, in one piece, what
// it does. That the store did not answer is ErrAgain.
func (m *Memory) request(ctx context.Context, name string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", reaper.ErrAgain, err)
	}
	m.mu.Lock()
	hook := m.hook
	m.mu.Unlock()
	var failure error
	if hook != nil {
		failure = hook(name)
	}
	if failure != nil && !errors.Is(failure, ErrLost) {
		return fmt.Errorf("%w: %w", reaper.ErrAgain, failure)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := do(); failure == nil {
		return err
	}
	return fmt.Errorf("%w: %w", reaper.ErrAgain, failure)
}
