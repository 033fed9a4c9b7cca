package reaper_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A conflict is what there is when the record of 10.0.0.1, in pool "pool" of the store "fixed", is
// to be put back.
type conflict struct {
	owner  ipam.EntryOwner // of the record
	pods   []census.Pod
	guests []census.VirtualMachine
	nodes  []census.Node
	pools  []ipam.Pool // of the store
	second []ipam.Pool // of another store

	sandboxes []census.Sandbox // of the node; nil if the restore is on none
}

// restore restores the record. It returns what the report has of it, and what the store was asked
// to put back.
func (c conflict) restore(t *testing.T) (entry report.RestoreEntry, written []ipam.Record) {
	t.Helper()
	store := restoring{fixedStore(c.pools), func(_ context.Context, _ string, rs []ipam.Record, permit ipam.Permit) []error {
		refused := permit()
		if refused == nil {
			written = append(written, rs...)
		}
		return slices.Repeat([]error{refused}, len(rs))
	}}
	h := newHarness(store, namedStore{c.second, "second"})
	h.pods.Add(c.pods...)
	h.pods.AddMachines(c.guests...)
	h.pods.AddNodes(c.nodes...)
	h.pods.AddSandboxes(c.sandboxes...)
	rep, _ := reaper.Restore(t.Context(), h.restoreOptions(func(o *reaper.RestoreOptions) {
		o.Journal.Records = []ipam.Record{{Backend: "fixed", Pool: "pool", Key: "1", IP: "10.0.0.1", Owner: c.owner}}
		if c.sandboxes != nil {
			o.Cluster = backendtest.OnNode(h.pods)
		}
	}))
	return rep.Entries[0], written
}

// attached returns a ready sandbox of the pod other, which has these addresses by libcni's cache.
func attached(id string, ips ...netip.Addr) []census.Sandbox {
	pools := []ipam.PoolRef{{Backend: "fixed", Name: "small"}}
	a := ipam.Attachment{Sandbox: id, Interface: "eth0", File: "/cache/" + id, IPs: ips, Pools: pools}
	return []census.Sandbox{{ID: id, Pod: other, UID: "u", Ready: true, Attachments: []ipam.Attachment{a}}}
}

// Promise 1, 2. An address that has another owner by now is not given to its old owner,
// even though its place is free.
func TestAddressWithANewOwnerIsNotPutBack(t *testing.T) {
	entry := func(change func(*ipam.Allocation)) ipam.Allocation {
		a := webAllocation()
		change(&a)
		return a
	}
	of := func(owner ipam.Owner) ipam.Allocation { return entry(func(a *ipam.Allocation) { a.Owner = owner }) }
	others := of(ipam.Owner{Pod: other})
	in := func(name, network string, as ...ipam.Allocation) ipam.Pool {
		return ipam.Pool{Name: name, Network: network, Allocations: as}
	}
	empty := in("pool", "blue")
	there := func(network string, a ipam.Allocation) []ipam.Pool {
		return []ipam.Pool{empty, in("there", network, a)}
	}
	alone, tunnelled := []ipam.Pool{empty}, []ipam.Pool{{Name: "pool", Tunnels: map[netip.Addr]string{}}}
	owner := ipam.EntryOwner{Namespace: "default", Pod: "web", Sandbox: "s1", Interface: "net1"}
	sandbox := ipam.EntryOwner{Sandbox: "s1"}
	launcher := ipam.EntryOwner{Namespace: "default", Pod: "virt-launcher-vm-x7k2p", Sandbox: "s1"}
	guest := func(names ...string) (guests []census.VirtualMachine) {
		for _, name := range names {
			guests = append(guests, census.VirtualMachine{Namespace: "default", Name: name, Addresses: []netip.Addr{ip1}, Reported: true})
		}
		return guests
	}
	const otherShows, otherHas = "pod default/other shows the address", "the address is allocated to pod default/other"
	for _, tt := range []struct {
		name  string
		is    conflict
		taken string // why it is not put back; empty if it is
	}{
		{"no owner has it", conflict{owner: owner, pools: alone}, ""},
		{"another sandbox of the node has it", conflict{owner: owner, pools: alone, sandboxes: attached("s2", ip1)},
			"sandbox of pod default/other has the address in /cache/s2"},
		{"its own sandbox has it", conflict{owner: owner, pools: alone, sandboxes: attached("s1", ip1)}, ""},
		{"its own sandbox has it, of whose ID the store has the beginning", conflict{owner: sandbox, pools: alone, sandboxes: attached("s1-whole", ip1)}, ""},
		{"another sandbox of the node has another", conflict{owner: owner, pools: alone, sandboxes: attached("s2", netip.MustParseAddr("10.0.0.2"))}, ""},
		{"its pool is gone", conflict{owner: owner}, ""},
		{"its pod shows it", conflict{owner: owner, pods: []census.Pod{showing(web, ip1)}, pools: alone}, ""},
		{"another pod shows it", conflict{owner: owner, pods: []census.Pod{showing(other, ip1)}, pools: alone}, otherShows},
		{"another pod that is finished shows it", conflict{owner: owner, pods: []census.Pod{finished(showing(other, ip1))}, pools: alone}, otherShows},
		{"another pod shows it, and has it in another network",
			conflict{owner: owner, pods: []census.Pod{showing(other, ip1)}, pools: there("red", others)}, ""},
		{"another pod shows it, in an unknown network",
			conflict{owner: owner, pods: []census.Pod{showing(other, ip1)}, pools: there("", others)}, otherShows},
		{"another allocation of the network has it", conflict{owner: owner, pools: there("blue", others)}, otherHas},
		{"an allocation of another network has it", conflict{owner: owner, pools: there("red", others)}, ""},
		{"an allocation of some network has it", conflict{owner: owner, pools: there("", others)}, otherHas},
		{"an allocation of a network has it, and its own network is unknown", conflict{owner: owner, pools: []ipam.Pool{in("there", "red", others)}}, otherHas},
		{"another allocation is for the same pod", conflict{owner: owner, pools: there("blue", webAllocation())}, ""},
		{"another allocation cannot be read", conflict{owner: owner, pools: there("blue", entry(func(a *ipam.Allocation) { a.Unreadable = "no JSON" }))},
			"the address is allocated to pod default/web"},
		{"another allocation is a tunnel's", conflict{owner: owner, pools: there("blue", entry(func(a *ipam.Allocation) {
			a.Foreign, a.Owner = "a tunnel", ipam.Owner{}
		}))}, "the address is allocated to an owner without a name"},
		{"its own allocation is there, as another pod's", conflict{owner: owner, pools: []ipam.Pool{in("pool", "blue", others)}}, ""}, // the store itself refuses

		// Pools and overlapping-range reservations are two stores of the same networks.
		{"another store has it in the network", conflict{owner: owner, pools: alone, second: []ipam.Pool{in("there", "blue", others)}},
			"the address is allocated to pod default/other"},
		{"another store has it in another network", conflict{owner: owner, pools: alone, second: []ipam.Pool{in("there", "red", others)}}, ""},
		{"another store has it in some network", conflict{owner: owner, pools: alone, second: []ipam.Pool{in("there", "", others)}}, ""},

		// A record that names no pod is put back alongside its own sandbox's allocation only.
		{"the same sandbox has it", conflict{owner: sandbox, pools: there("blue", of(ipam.Owner{Sandbox: "s1"}))}, ""},
		{"another sandbox has it", conflict{owner: sandbox, pools: there("blue", of(ipam.Owner{Sandbox: "s2"}))}, "the address is allocated to sandbox s2"},
		{"the same sandbox has it, for a pod", conflict{owner: sandbox, pools: there("blue", of(ipam.Owner{Sandbox: "s1", Pod: other}))}, otherHas},
		{"neither names a sandbox", conflict{pools: there("blue", of(ipam.Owner{}))}, "the address is allocated to an owner without a name"},

		// The guest of a machine keeps the address of an earlier pod in a live migration.
		{"its own guest has it", conflict{owner: launcher, pools: alone, guests: guest("vm")}, ""},
		{"another guest has it", conflict{owner: launcher, pools: alone, guests: guest("other")}, "virtual machine default/other reports the address"},
		{"its own and another guest have it", conflict{owner: launcher, pools: alone, guests: guest("vm", "other")},
			"virtual machine default/other reports the address"},
		{"a guest has it, and its pod is of none", conflict{owner: owner, pools: alone, guests: guest("vm")}, "virtual machine default/vm reports the address"},
		// Nodes take addresses of some pools for their tunnels.
		{"a node has it", conflict{owner: owner, pools: tunnelled, nodes: []census.Node{tunnelOn("n1", ip1)}}, "node n1 shows the address"},
		{"a node has another", conflict{owner: owner, pools: tunnelled, nodes: []census.Node{tunnelOn("n1", ip2)}}, ""},
		{"a node has it, in another network", conflict{owner: owner, pools: alone, nodes: []census.Node{tunnelOn("n1", ip1)}}, ""},
		{"a node of the store has it", conflict{owner: owner, pools: []ipam.Pool{{Name: "pool", Tunnels: map[netip.Addr]string{ip1: "n1"}}}},
			"stored node n1 shows the address"},

		{"a guest has it, and its pod has no name", conflict{owner: sandbox, pools: alone, guests: guest("vm")}, "virtual machine default/vm reports the address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, written := tt.is.restore(t)
			equal(t, "written", len(written) > 0, tt.taken == "")
			want := report.RestoreEntry{Outcome: report.Restored}
			if tt.taken != "" {
				want = report.RestoreEntry{Outcome: report.Taken, Error: "its place is taken: " + tt.taken}
			}
			equal(t, "outcome", report.RestoreEntry{Outcome: got.Outcome, Error: got.Error}, want)
		})
	}
}

// Promise 1, 2. An address that an object keeps for another pod is not put back, and the others are.
func TestAddressReservedForAnotherPodIsNotPutBack(t *testing.T) {
	of := func(o ipam.Protection, pod string) ipam.Protection { o.Pod = app(pod).Pod; return o }
	for _, tt := range []struct {
		name   string
		object ipam.Protection
		taken  string // why 10.0.0.2 is not put back; empty if it is
	}{
		{"for another pod", of(protecting("a", nil, ip2), "new-1"), fakeResource + " ns/a keeps the address for pod default/new-1"},
		{"for its pod", of(protecting("a", nil, ip2), "gone-1"), ""},
		{"for no pod in particular", protecting("a", nil, ip2), ""},
		{"another address for another pod", of(protecting("a", nil, ip1), "new-1"), ""},
		{"all addresses of another pod", protectingPod("a", nil, "new-1"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m, p := protectedHarness(t)
			h.addPods(t, m, "gone-2")
			equal(t, "released", h.run(t).Summary.Released, 2)
			p.objects = []ipam.Protection{tt.object}
			rep, _ := reaper.Restore(t.Context(), h.restoreOptions())
			want := []report.RestoreEntry{{Outcome: report.Restored}, {Outcome: report.Restored}}
			if tt.taken != "" {
				want[0] = report.RestoreEntry{Outcome: report.Taken, Error: "its place is taken: " + tt.taken}
			}
			var got []report.RestoreEntry
			for _, e := range rep.Entries {
				got = append(got, report.RestoreEntry{Outcome: e.Outcome, Error: e.Error})
			}
			equal(t, "outcomes", got, want)
		})
	}
}

// Promise 2, 7, 9.
func TestRecordThatCannotBePutBackStopsNoOther(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*releasedHarness)
		want   report.Fate // of both records of the first store
		why    string
	}{
		{"the store cannot be listed", func(r *releasedHarness) {
			r.one.OnRequest(func(string) error { return errConnection })
		}, report.NotRestored, "one: list one: not decided: " + errConnection.Error()},
		{"the store is not there", func(r *releasedHarness) {
			r.backends[0] = scriptedStore{name: "one", steps: []step{{err: ipam.ErrNotInstalled}}}
		}, report.NotRestored, "one: not installed"},
		{"this program has no such store", func(r *releasedHarness) { r.backends = r.backends[1:] }, report.NotRestored, `the program has no backend "one"`},
		{"the places are taken", func(r *releasedHarness) {
			for _, name := range []string{"new-1", "new-2"} {
				_, _ = r.one.Reserve("a", app(name))
			}
		}, report.Taken, "its place is taken: it is now pod default/new-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReleasedHarness(t)
			tt.change(r)
			before := contentsOf(t, r.one)
			report, err := r.restorePartly(t)
			equal(t, "fates", restoreOutcomes(report), []string{
				"one/a/2 " + tt.want.String(), "one/a/3 " + tt.want.String(), "two/a/10.1.0.2/10.1.0.2 restored",
			})
			whole := "one: a: 2: " + tt.why
			if errors.Is(err, ipam.ErrTaken) { // one line is enough for all
				whole = "2 allocations cannot be put back: taken by now"
			}
			if e := report.Entries[0].Error; !strings.HasPrefix(e, tt.why) || !strings.Contains(err.Error(), whole) {
				t.Errorf("%q in %v, want it to tell that %s", e, err, tt.why)
			}
			equal(t, "first store", contentsOf(t, r.one), before)
			equal(t, "second store", contentsOf(t, r.two), r.beforeTwo)
		})
	}
}

// Promise 1. A backend that does not put back what pods no longer get is told that the pod of the
// record still has the address. Only the pod's status says so: a tenant writes the annotations.
func TestRestoreTellsWhichAddressesAreInUse(t *testing.T) {
	proving := func(pod ipam.PodRef) census.Pod {
		p := showing(pod, ip1)
		p.InStatus = 1
		return p
	}
	for _, tt := range []struct {
		name string
		pods []census.Pod
		want bool
	}{
		{"no pod", nil, false},
		{"the status of its pod", []census.Pod{proving(web)}, true},
		{"an annotation of its pod", []census.Pod{showing(web, ip1)}, false},
		{"the status of its pod, which has ended", []census.Pod{finished(proving(web))}, false},
		{"the status of its pod with another address", []census.Pod{showing(web, ip2)}, false},
	} {
		_, got := conflict{
			owner: ipam.EntryOwner{Namespace: web.Namespace, Pod: web.Name}, pods: tt.pods, pools: []ipam.Pool{{Name: "pool", Network: "blue"}},
		}.restore(t)
		if len(got) != 1 {
			t.Fatalf("%s: %d records", tt.name, len(got))
		}
		equal(t, tt.name, got[0].InUse, tt.want)
	}
}
