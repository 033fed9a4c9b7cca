package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A hiding is a backend whose list has an error in the place of one pool.
type hiding struct {
	ipam.Backend
	pool string
	err  error
}

func (h hiding) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		for pool, err := range h.Backend.List(ctx) {
			if pool.Name == h.pool {
				pool, err = ipam.Pool{}, h.err
			}
			if !yield(pool, err) {
				return
			}
		}
	}
}

// Promise 1, 2. A run released 10.0.0.2 of gone. Then another pod got it from another pool of the network, and
// shows it nowhere: its ADD is under way. Now that pool cannot be read. A restore would give 10.0.0.2 to two
// pods. It puts nothing back as long as it cannot see who has it there.
func TestAddressThatAPoolWhichCannotBeReadHasIsNotPutBack(t *testing.T) {
	unread := &ipam.PoolError{Pool: "shared", Err: errors.New("no range")}
	for _, tt := range []struct {
		name  string
		other *backendtest.Memory // which has the other pool; nil: the same store
		hides error               // instead of that pool
		why   string
	}{
		{"a pool of the same store", nil, unread, "memory: shared: no range"},
		{"a pool of a store of the same networks", backendtest.NewMemory("second"), unread, "second: shared: no range"},
		{"a store of the same networks", backendtest.NewMemory("second"), errForbidden, "second: " + errForbidden.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m := memoryHarness(t, "live-1", "gone")
			equal(t, "released", h.run(t).Summary.Released, 1)
			has, seen := m, m.Backend()
			if tt.other != nil {
				has = tt.other
				h.backends = append(h.backends, nil)
				seen = has.Backend()
			}
			if _, err := has.Share(ipam.Allocation{IP: ip2}, app("new")); err != nil {
				t.Fatal(err)
			}
			there := len(h.backends) - 1
			shares := func(o *reaper.RestoreOptions) {
				o.Shares = func(store, other string) bool { return store == "second" && other == "memory" }
			}
			dry := func(o *reaper.RestoreOptions) { o.DryRun = true }
			refused := "another pod may have it: " + tt.why
			h.backends[there] = hiding{seen, "shared", tt.hides}
			for _, change := range []func(*reaper.RestoreOptions){dry, func(*reaper.RestoreOptions) {}} {
				rep, _ := h.restorePartly(t, shares, change)
				equal(t, "outcomes", restoreOutcomes(rep), []string{"memory/a/2 failed"})
				equal(t, "error", rep.Entries[0].Error, refused+": --accept-second-address puts it back all the same")
			}
			h.backends[there] = seen
			rep, _ := h.restorePartly(t, shares)
			equal(t, "outcomes once it can be read", restoreOutcomes(rep), []string{"memory/a/2 taken"})
			equal(t, "entries of 10.0.0.2", len(contentsOf(t, has)), map[bool]int{true: 2, false: 1}[has == m])

			h.backends[there] = hiding{seen, "shared", tt.hides}
			forced := h.restore(t, shares, func(o *reaper.RestoreOptions) { o.AcceptSecondAddress = true })
			equal(t, "outcomes if it is forced", restoreOutcomes(forced), []string{"memory/a/2 restored"})
			equal(t, "note", forced.Entries[0].Note, refused)
		})
	}
}

// Promise 2. What could not be read refuses what it may have, and nothing else.
func TestPoolThatCannotBeReadRefusesWhatItMayHave(t *testing.T) {
	range24 := netip.MustParsePrefix("10.0.0.0/24")
	own := step{pool: ipam.Pool{Name: "pool", Network: "blue"}}
	exclusive := step{pool: ipam.Pool{Name: "pool", Exclusive: true}}
	unread := func(network string, in netip.Prefix) step {
		return step{err: &ipam.PoolError{Pool: "bad", Err: errConnection, Network: network, Range: in}}
	}
	undecoded := func(in netip.Prefix) step {
		return step{err: &ipam.ObjectError{Object: "block", Err: errConnection, Range: in}}
	}
	sealed := fakeProtector{objects: []ipam.Protection{{Name: "objects ns/a", Unreadable: "no JSON"}}}
	everywhere, elsewhere := netip.Prefix{}, netip.MustParsePrefix("10.0.1.0/24")
	proving := showing(web, ip1)
	proving.InStatus = 1
	bad := ": bad: " + errConnection.Error()
	for _, tt := range []struct {
		name   string
		own    []step
		beside []step // of a store of the same networks
		other  []step // of a store of other networks
		keeps  fakeProtector
		pod    census.Pod
		node   string
		why    string // empty: it goes back
	}{
		{name: "all is read", own: []step{own}},
		{name: "a pool of any network", own: []step{own, unread("", everywhere)}, why: "fixed" + bad},
		{name: "a pool of the network", own: []step{own, unread("blue", everywhere)}, why: "fixed" + bad},
		{name: "a pool of another network", own: []step{own, unread("red", everywhere)}},
		{name: "a pool of a range with the address", own: []step{own, unread("", range24)}, why: "fixed" + bad},
		{name: "a pool of another range", own: []step{own, unread("blue", elsewhere)}},
		{name: "a pool, and its own one is gone", own: []step{unread("red", everywhere)}, why: "fixed" + bad},
		{name: "a pool, and its own one has its addresses alone", own: []step{exclusive, unread("", everywhere)}},
		{name: "a pool, and its pod has the address", own: []step{own, unread("", everywhere)}, pod: proving},
		{name: "a pool, and its pod says so", own: []step{own, unread("", everywhere)}, pod: showing(web, ip1), why: "fixed" + bad},
		{name: "a pool, on a node", own: []step{own, unread("", everywhere)}, node: "n1", why: "fixed" + bad},
		{name: "an object that has no addresses", own: []step{own, undecoded(everywhere)}},
		{name: "a large pool with the address", own: []step{own, undecoded(range24)}, why: "fixed: 10.0.0.0/24 is too large to be listed"},
		{name: "a large pool without it", own: []step{own, undecoded(elsewhere)}},
		{name: "an object that keeps addresses", own: []step{own}, keeps: sealed, why: "objects ns/a: no JSON"},
		{name: "objects that keep addresses", own: []step{own}, keeps: fakeProtector{broken: errConnection}, why: "reservedIPs: " + errConnection.Error()},
		{name: "a pool of a store of the networks", own: []step{own}, beside: []step{unread("", everywhere)}, why: "beside" + bad},
		{name: "a store of the networks", own: []step{own}, beside: []step{{err: errConnection}}, why: "beside: " + errConnection.Error()},
		{name: "a store of the networks is not there", own: []step{own}, beside: []step{{err: ipam.ErrNotInstalled}}},
		{name: "a store of other networks", own: []step{own}, other: []step{{err: errConnection}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(scriptedStore{name: "fixed", steps: tt.own}, scriptedStore{name: "beside", steps: tt.beside}, scriptedStore{name: "other", steps: tt.other})
			h.pods.Add(tt.pod)
			h.protectors = []ipam.Protector{&tt.keeps}
			rep, _ := reaper.Restore(t.Context(), h.restoreOptions(func(o *reaper.RestoreOptions) {
				o.Node = tt.node
				o.Shares = func(store, other string) bool { return store == "beside" && other == "fixed" }
				o.Journal.Records = []ipam.Record{{
					Backend: "fixed", Pool: "pool", Key: "1", IP: ip1.String(),
					Owner: ipam.EntryOwner{Namespace: web.Namespace, Pod: web.Name, Sandbox: "s1"},
				}}
			}))
			want := report.RestoreEntry{Outcome: report.Restored}
			if tt.why != "" {
				forced := "--accept-second-address puts it back all the same"
				if tt.node != "" {
					forced = "correct that, and restore again"
				}
				want = report.RestoreEntry{Outcome: report.NotRestored, Error: fmt.Sprintf("another pod may have it: %s: %s", tt.why, forced)}
			}
			got := rep.Entries[0]
			equal(t, "outcome", report.RestoreEntry{Outcome: got.Outcome, Error: got.Error}, want)
		})
	}
}
