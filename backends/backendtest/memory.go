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

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Memory is a store in memory. Every write compares and swaps. A Memory is safe for
// concurrent use.
//
// There are four kinds. They differ in what the plugin does when a pod gets a new
// sandbox:
//
//   - NewMemory: the sandbox adopts the pod's entry, and its token changes, as in the
//     IPPools of Whereabouts;
//   - NewTwoStep: the sandbox adopts the pod's entry without a write, as in the overlapping
//     reservations of Whereabouts. The backend must put a tombstone in the owner's place, and
//     then check the owner again. Each address is a pool;
//   - NewForgetful: the sandbox gets another address;
//   - NewHandled: the sandbox gets another address, and entries are SandboxOwned and have a
//     Created, as in Calico. The entries of one sandbox are a group with a handle. The handle
//     is written before the first address, and removed by its own request after the last. The
//     pool "handles" lists the empty handles.
type Memory struct {
	name    string
	twoStep bool
	forgets bool
	handled bool

	mu      sync.Mutex
	hook    func(request string) error
	now     func() time.Time
	pools   []string
	entries []*memoryEntry
	version int
	handles map[string]int  // by sandbox: the version of the handle's last write
	started map[string]bool // the sandboxes whose ADD has written its handle
	fumbles bool
}

// A memoryEntry is one entry of a Memory.
type memoryEntry struct {
	pool, key string
	ip        netip.Addr
	owner     ipam.Owner // the owner as stored
	sandbox   string     // the sandbox that has the address, stored or not
	version   int        // the version of the last write
	created   time.Time  // zero if the store does not say
	group     string     // the handle's sandbox, in a store with handles
	tombstone bool
}

// ErrLost is an error for a hook of OnRequest: the request takes effect, but its answer gets
// lost.
var ErrLost = ipam.ErrLost

// NewMemory returns an empty store in which a sandbox adopts its pod's entry. name is the
// backend's.
func NewMemory(name string) *Memory { return &Memory{name: name} }

// NewTwoStep returns an empty store in which adoptions write nothing. name is the backend's.
func NewTwoStep(name string) *Memory { return &Memory{name: name, twoStep: true} }

// NewForgetful returns an empty store in which a new sandbox gets another address. name is the
// backend's.
func NewForgetful(name string) *Memory { return &Memory{name: name, forgets: true} }

// NewHandled returns an empty store in which sandboxes have handles. name is the backend's.
func NewHandled(name string) *Memory {
	return &Memory{
		name: name, forgets: true, handled: true, now: time.Now,
		handles: make(map[string]int), started: make(map[string]bool),
	}
}

// SetClock sets the clock for the Created of entries in a store with handles. The
// default is time.Now.
func (m *Memory) SetClock(now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = now
}

// OnRequest sets a hook that runs at the beginning of each request of the backend. The request
// is "list", "record", "release pool", "compare pool" or "restore pool". A store with
// tombstones has "bury pool", which writes one, and "remove pool" instead of "release pool";
// its Mend is also "restore pool". A store with handles also has "settle sandbox", which
// removes a handle. The hook may change the store. If it returns an error, the request fails
// with it.
func (m *Memory) OnRequest(hook func(request string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

// Backend implements Store.
func (m *Memory) Backend() ipam.Backend {
	switch {
	case m.twoStep:
		return withTombstones{memory{m}}
	case m.handled:
		return withHandles{memory{m}}
	default:
		return memory{m}
	}
}

// Reserve implements Store.
func (m *Memory) Reserve(pool string, owner ipam.Owner) (ipam.Allocation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		mine := e.owner.Pod == owner.Pod && e.owner.Interface == owner.Interface && m.within(e, pool)
		if !mine || e.tombstone || m.forgets {
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
			return ipam.Allocation{}, fmt.Errorf("pool %s is full", pool)
		}
		if slices.ContainsFunc(m.entries, func(e *memoryEntry) bool { return e.ip == ip }) {
			continue
		}
		return m.give(pool, ip, owner), nil
	}
}

// give adds an entry.
func (m *Memory) give(pool string, ip netip.Addr, owner ipam.Owner) ipam.Allocation {
	e := &memoryEntry{pool: pool, key: strconv.Itoa(int(ip.As4()[3])), ip: ip, owner: owner, sandbox: owner.Sandbox}
	if m.twoStep {
		e.pool, e.key = pool+"/"+ip.String(), ip.String()
		e.owner.UID = "" // an adoption would not update it
	}
	if m.handled {
		m.begin(owner.Sandbox)
		e.group, e.created = owner.Sandbox, m.now()
	}
	m.wrote(e)
	m.entries = append(m.entries, e)
	return e.allocation()
}

// Share implements Sharer.
func (m *Memory) Share(a ipam.Allocation, owner ipam.Owner) (ipam.Allocation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.give("shared", a.IP, owner), nil
}

// Free implements Store.
func (m *Memory) Free(pool string, owner ipam.Owner) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = slices.DeleteFunc(m.entries, func(e *memoryEntry) bool {
		return m.within(e, pool) && e.sandbox == owner.Sandbox && e.owner.Interface == owner.Interface
	})
	m.removeEmptyHandle(owner.Sandbox)
	return nil
}

// Rename makes an entry name another pod.
func (m *Memory) Rename(r ipam.Allocation, pod ipam.PodRef) {
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
	snapshot := make(map[string]string, len(m.entries))
	for _, e := range m.entries {
		text := e.String()
		if _, ok := m.handles[e.group]; e.group != "" && !ok {
			text += " without a handle"
		}
		snapshot[Place(ipam.Allocation{Pool: e.pool, Key: e.key})] = text
	}
	for _, sandbox := range m.emptyHandles() {
		snapshot[Place(ipam.Allocation{Pool: emptyHandles, Key: sandbox})] = "a handle"
	}
	return snapshot, nil
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

// within reports whether the entry belongs to the pool of the suite.
func (m *Memory) within(e *memoryEntry, pool string) bool {
	return e.pool == pool || m.twoStep && strings.HasPrefix(e.pool, pool+"/")
}

// wrote gives an entry a version that no entry has had yet.
func (m *Memory) wrote(e *memoryEntry) {
	m.version++
	e.version = m.version
}

// find returns the entry at the place of the allocation, or nil.
func (m *Memory) find(r ipam.Allocation) *memoryEntry {
	i := slices.IndexFunc(m.entries, func(e *memoryEntry) bool { return e.pool == r.Pool && e.key == r.Key })
	if i < 0 {
		return nil
	}
	return m.entries[i]
}

// String returns the content of the entry without its version. The suite calls it
// often, so it does not use fmt.
func (e *memoryEntry) String() string {
	o := e.owner
	return strings.Join([]string{
		e.ip.String(), o.Pod.String(), o.UID, o.Sandbox, o.Interface, o.Node,
		"of", e.sandbox, strconv.FormatBool(e.tombstone),
	}, " ")
}

// allocation returns the entry as listed.
func (e *memoryEntry) allocation() ipam.Allocation {
	a := ipam.Allocation{
		Pool: e.pool, Key: e.key, IP: e.ip, Owner: e.owner,
		Token: strconv.Itoa(e.version), Interrupted: e.tombstone,
		Created: e.created, Group: e.group,
	}
	if e.group != "" {
		a.Adoption = ipam.SandboxOwned
	}
	return a
}

// listed returns the pools as listed, in a fixed order.
func (m *Memory) listed() []ipam.Pool {
	pools := make(map[string]*ipam.Pool)
	var names []string
	for _, e := range m.entries {
		u := pools[e.pool]
		if u == nil {
			u = &ipam.Pool{Name: e.pool, Network: "-"}
			if !m.twoStep {
				u.Range, u.Capacity = m.network(e.pool), big.NewInt(254)
			}
			pools[e.pool] = u
			names = append(names, e.pool)
		}
		u.Allocations = append(u.Allocations, e.allocation())
	}
	slices.Sort(names)
	all := make([]ipam.Pool, len(names))
	for i, name := range names {
		all[i] = *pools[name]
	}
	if left := m.emptyHandlePool(); len(left.Allocations) > 0 {
		all = append(all, left)
	}
	return all
}

// request performs one request of a backend: it calls the hook, then do under the lock. If the
// hook fails, the error wraps ipam.ErrAgain.
func (m *Memory) request(ctx context.Context, name string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ipam.ErrAgain, err)
	}
	m.mu.Lock()
	hook := m.hook
	m.mu.Unlock()
	var failure error
	if hook != nil {
		failure = hook(name)
	}
	if failure != nil && !errors.Is(failure, ErrLost) {
		return fmt.Errorf("%w: %w", ipam.ErrAgain, failure)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := do(); failure == nil {
		return err
	}
	return fmt.Errorf("%w: %w", ipam.ErrAgain, failure)
}
