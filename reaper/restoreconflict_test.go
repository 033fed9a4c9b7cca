package reaper_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// ignoreRecords ignores the unexported fields of a report.
var ignoreRecords = cmpopts.IgnoreUnexported(report.RestoreReport{})

// A restoreSpy is a store that notes the records of Restore, and returns its error for
// each.
type restoreSpy struct {
	fixedStore
	answer error
	calls  *int
}

func (d restoreSpy) Restore(_ context.Context, _ string, rs []ipam.Record) []error {
	*d.calls++
	return slices.Repeat([]error{d.answer}, len(rs))
}

// restoreOver restores the record of web's allocation, 10.0.0.1 in pool "pool" of the
// store "fixed". The store has these pools by then.
func restoreOver(t *testing.T, pods []census.Pod, pools ...ipam.Pool) (entry report.RestoreEntry, written bool) {
	t.Helper()
	calls := 0
	h := newHarness(restoreSpy{fixedStore: pools, calls: &calls})
	h.pods.Add(pods...)
	report, _ := reaper.Restore(t.Context(), h.restoreOptions(func(o *reaper.RestoreOptions) {
		o.Journal.Records = []ipam.Record{{
			Backend: "fixed", Pool: "pool", Key: "1", IP: "10.0.0.1", Stored: []byte(`"t1"`),
			Owner: ipam.EntryOwner{Namespace: "default", Pod: "web", Sandbox: "s1", Interface: "net1"},
		}}
	}))
	return report.Entries[0], calls > 0
}

// Promise 1, 2. An address that has another owner by now is not given to its old owner,
// even though its place is free.
func TestAddressWithANewOwnerIsNotPutBack(t *testing.T) {
	entry := func(change func(*ipam.Allocation)) ipam.Allocation {
		a := webAllocation()
		change(&a)
		return a
	}
	others := entry(func(a *ipam.Allocation) { a.Owner.Pod = other })
	in := func(name, network string, as ...ipam.Allocation) ipam.Pool {
		return ipam.Pool{Name: name, Network: network, Allocations: as}
	}
	empty := in("pool", "blue")
	for _, tt := range []struct {
		name  string
		pods  []census.Pod
		pools []ipam.Pool
		taken string // why it is not put back; empty if it is
	}{
		{"no owner has it", nil, []ipam.Pool{empty}, ""},
		{"its pool is gone", nil, nil, ""},
		{"its pod shows it", []census.Pod{showing(web, ip1)}, []ipam.Pool{empty}, ""},
		{"another pod shows it", []census.Pod{showing(other, ip1)}, []ipam.Pool{empty}, "pod default/other shows the address"},
		{"another pod that is finished shows it", []census.Pod{finished(showing(other, ip1))}, []ipam.Pool{empty}, "pod default/other shows the address"},
		{"another pod shows it, and has it in another network", []census.Pod{showing(other, ip1)},
			[]ipam.Pool{empty, in("there", "red", others)}, ""},
		{"another pod shows it, in an unknown network", []census.Pod{showing(other, ip1)},
			[]ipam.Pool{empty, in("there", "", others)}, "pod default/other shows the address"},
		{"another allocation of the network has it", nil, []ipam.Pool{empty, in("there", "blue", others)}, "fixed there has the address for pod default/other"},
		{"an allocation of another network has it", nil, []ipam.Pool{empty, in("there", "red", others)}, ""},
		{"an allocation of some network has it", nil, []ipam.Pool{empty, in("there", "", others)}, "fixed there has the address for pod default/other"},
		{"an allocation of a network has it, and its own network is unknown", nil, []ipam.Pool{in("there", "red", others)},
			"fixed there has the address for pod default/other"},
		{"another allocation is for the same pod", nil, []ipam.Pool{empty, in("there", "blue", webAllocation())}, ""},
		{"another allocation cannot be read", nil, []ipam.Pool{empty, in("there", "blue", entry(func(a *ipam.Allocation) { a.Unreadable = "no JSON" }))},
			"fixed there has the address for pod default/web"},
		{"another allocation is a tunnel's", nil, []ipam.Pool{empty, in("there", "blue", entry(func(a *ipam.Allocation) {
			a.Foreign, a.Owner = "a tunnel", ipam.Owner{}
		}))}, "fixed there has the address for an owner without a name"},
		{"its own allocation is there, as another pod's", nil, []ipam.Pool{in("pool", "blue", others)}, ""}, // the store itself refuses
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, written := restoreOver(t, tt.pods, tt.pools...)
			equal(t, "written", written, tt.taken == "")
			want := report.RestoreEntry{Outcome: report.Restored}
			if tt.taken != "" {
				want = report.RestoreEntry{Outcome: report.Taken, Error: "its place is taken: " + tt.taken}
			}
			equal(t, "outcome", report.RestoreEntry{Outcome: got.Outcome, Error: got.Error}, want)
		})
	}
}

// Promise 1, 2. A record that names no pod is put back alongside another allocation of its address
// only if that one is the same sandbox's, and names no pod either.
func TestRecordWithoutAPodIsPutBackBesideItsOwnSandboxOnly(t *testing.T) {
	for _, tt := range []struct {
		name    string
		sandbox string // of the record
		other   ipam.Owner
		want    report.RestoreOutcome
	}{
		{"the same sandbox", "s1", ipam.Owner{Sandbox: "s1"}, report.Restored},
		{"another sandbox", "s1", ipam.Owner{Sandbox: "s2"}, report.Taken},
		{"the same sandbox, of a pod", "s1", ipam.Owner{Sandbox: "s1", Pod: other}, report.Taken},
		{"neither names a sandbox", "", ipam.Owner{}, report.Taken},
	} {
		calls := 0
		a := webAllocation()
		a.Owner = tt.other
		h := newHarness(restoreSpy{fixedStore{{Name: "pool", Network: "blue"}, {Name: "there", Network: "blue", Allocations: []ipam.Allocation{a}}}, nil, &calls})
		got, _ := reaper.Restore(t.Context(), h.restoreOptions(func(o *reaper.RestoreOptions) {
			o.Journal.Records = []ipam.Record{{Backend: "fixed", Pool: "pool", Key: "1", IP: "10.0.0.1", Owner: ipam.EntryOwner{Sandbox: tt.sandbox}}}
		}))
		equal(t, tt.name, got.Entries[0].Outcome, tt.want)
	}
}

// Promise 1, 2. An address that an object keeps for another pod is not put back, and the others are.
func TestAddressReservedForAnotherPodIsNotPutBack(t *testing.T) {
	of := func(o reservedIP, pod string) reservedIP { o.Pod = app(pod).Pod; return o }
	for _, tt := range []struct {
		name   string
		object reservedIP
		taken  string // why 10.0.0.2 is not put back; empty if it is
	}{
		{"for another pod", of(protecting("a", nil, ip2), "new-1"), fakeStorePool + " ns/a keeps the address for pod default/new-1"},
		{"for its pod", of(protecting("a", nil, ip2), "gone-1"), ""},
		{"for no pod in particular", protecting("a", nil, ip2), ""},
		{"another address for another pod", of(protecting("a", nil, ip1), "new-1"), ""},
		{"all addresses of another pod", protectingPod("a", nil, "new-1"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m, s := protectedHarness(t)
			h.addPods(t, m, "gone-2")
			equal(t, "released", h.run(t).Summary.Released, 2)
			s.add(tt.object)
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

// Promise 1. Pools and overlapping-range reservations are two stores of the same
// networks.
func TestAddressThatAnotherStoreHoldsInTheSameNetworkIsNotPutBack(t *testing.T) {
	there := poolOf(webAllocation())
	there.Allocations[0].Owner.Pod = other
	for network, want := range map[string]report.RestoreOutcome{"blue": report.Taken, "red": report.Restored, "": report.Restored} {
		calls := 0
		h := newHarness(restoreSpy{fixedStore{ipam.Pool{Name: "pool", Network: "blue"}}, nil, &calls})
		there.Network = network
		h.backends = append(h.backends, scriptedStore{name: "second", steps: []step{{pool: there}}})
		report, _ := reaper.Restore(t.Context(), h.restoreOptions(func(o *reaper.RestoreOptions) {
			o.Journal.Records = []ipam.Record{{Backend: "fixed", Pool: "pool", Key: "1", IP: "10.0.0.1"}}
		}))
		equal(t, "outcome where the other store has it in "+network, report.Entries[0].Outcome, want)
	}
}

// Promise 2, 7, 9.
func TestRecordThatCannotBePutBackStopsNoOther(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*releasedHarness)
		want   report.RestoreOutcome // of both records of the first store
		why    string
	}{
		{"the store cannot be listed", func(r *releasedHarness) {
			r.one.OnRequest(func(string) error { return errConnection })
		}, report.NotRestored, "one: list one: not decided: " + errConnection.Error()},
		{"the store is not there", func(r *releasedHarness) {
			r.backends[0] = scriptedStore{name: "one", steps: []step{{err: ipam.ErrNotInstalled}}}
		}, report.NotRestored, "one: the store is not installed here"},
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
				"one/a/2 " + string(tt.want), "one/a/3 " + string(tt.want), "two/a/10.1.0.2/10.1.0.2 restored",
			})
			if e := report.Entries[0].Error; !strings.HasPrefix(e, tt.why) || !strings.Contains(err.Error(), "one: a: 2: "+tt.why) {
				t.Errorf("%q in %v, want it to tell that %s", e, err, tt.why)
			}
			equal(t, "first store", contentsOf(t, r.one), before)
			equal(t, "second store", contentsOf(t, r.two), r.beforeTwo)
		})
	}
}

// Promise 1, 10. Reserved IPs are restored before the addresses that they protect.
func TestRestorePutsReservedIPsBackFirst(t *testing.T) {
	h, m, s := protectedHarness(t, deletable(protecting("a", hours(0), ip2)))
	before := contentsOf(t, m)
	equal(t, "released", h.run(t).Summary.Released, 2)
	var order []string
	var mu sync.Mutex // the stores are listed at the same time
	note := func(request string) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, request)
		return nil
	}
	m.OnRequest(note)
	s.hook = note
	h.restore(t)
	equal(t, "order", order, []string{"list", "list", "restore ns/a", "restore a"})
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "objects", s.keys(), []string{"ns/a"})
}

// Promise 1. An address that a guest reports is put back for a pod of its own machine only: the guest
// keeps the address of an earlier pod in a live migration.
func TestAddressOfAGuestIsPutBackForItsOwnMachine(t *testing.T) {
	guest := func(name string) census.VirtualMachine {
		return census.VirtualMachine{Namespace: "default", Name: name, Addresses: []netip.Addr{ip1}, Reported: true}
	}
	for _, tt := range []struct {
		name   string
		pod    string
		guests []census.VirtualMachine
		taken  string
	}{
		{"its own guest", "virt-launcher-vm-x7k2p", []census.VirtualMachine{guest("vm")}, ""},
		{"another guest", "virt-launcher-vm-x7k2p", []census.VirtualMachine{guest("other")}, "virtual machine default/other reports the address"},
		{"its own and another guest", "virt-launcher-vm-x7k2p", []census.VirtualMachine{guest("vm"), guest("other")},
			"virtual machine default/other reports the address"},
		{"a guest, for a pod of none", "web", []census.VirtualMachine{guest("vm")}, "virtual machine default/vm reports the address"},
		{"a guest, for a pod without a name", "", []census.VirtualMachine{guest("vm")}, "virtual machine default/vm reports the address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			h := newHarness(restoreSpy{fixedStore{{Name: "pool", Network: "blue"}}, nil, &calls})
			h.pods.AddMachines(tt.guests...)
			rep, _ := reaper.Restore(t.Context(), h.restoreOptions(func(o *reaper.RestoreOptions) {
				o.Journal.Records = []ipam.Record{{Backend: "fixed", Pool: "pool", Key: "1", IP: "10.0.0.1",
					Owner: ipam.EntryOwner{Namespace: "default", Pod: tt.pod, Sandbox: "s1"}}}
			}))
			want := report.RestoreEntry{Outcome: report.Restored}
			if tt.taken != "" {
				want = report.RestoreEntry{Outcome: report.Taken, Error: "its place is taken: " + tt.taken}
			}
			equal(t, "outcome", report.RestoreEntry{Outcome: rep.Entries[0].Outcome, Error: rep.Entries[0].Error}, want)
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
		var got []ipam.Record
		h := newHarness(restoreNote{fixedStore{{Name: "pool", Network: "blue"}}, &got})
		h.pods.Add(tt.pods...)
		_, err := reaper.Restore(t.Context(), h.restoreOptions(func(o *reaper.RestoreOptions) {
			o.Journal.Records = []ipam.Record{{Backend: "fixed", Pool: "pool", Key: "1", IP: "10.0.0.1",
				Owner: ipam.EntryOwner{Namespace: web.Namespace, Pod: web.Name}}}
		}))
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v, %d records", tt.name, err, len(got))
		}
		equal(t, tt.name, got[0].InUse, tt.want)
	}
}

// A restoreNote is a store that keeps the records that it is to put back.
type restoreNote struct {
	fixedStore
	got *[]ipam.Record
}

func (n restoreNote) Restore(_ context.Context, _ string, rs []ipam.Record) []error {
	*n.got = append(*n.got, rs...)
	return make([]error, len(rs))
}
