package reaper_test

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A laterStore has one pool at the first listing, and another one at each later one.
type laterStore struct {
	surveyor
	lists *[][]ipam.Pool
}

func (s laterStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		pools := (*s.lists)[0]
		if len(*s.lists) > 1 {
			*s.lists = (*s.lists)[1:]
		}
		if pools == nil {
			yield(ipam.Pool{}, errors.New("no list"))
			return
		}
		for _, pool := range pools {
			if !yield(pool, nil) {
				return
			}
		}
	}
}

// A finding is told if it is still so when the store is listed again, and its pods are read by name.
func TestFindingsAreLookedAtAgain(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.2")
	without := overlapping()[:1]
	without[0].Allocations = without[0].Allocations[:1]
	withIt := overlapping()[:1]
	onNet := func(ref ipam.PodRef, ip netip.Addr) census.Pod {
		pod := showing(ref, ip)
		pod.ByCalico, pod.InStatus, pod.UID = 1, 1, ref.Name
		return pod
	}
	nothing := func(string) error { return nil }
	for _, tt := range []struct {
		name  string
		lists [][]ipam.Pool
		pods  []census.Pod
		call  func(string) error
		want  []report.FindingKind
	}{
		{"the store does not have it", [][]ipam.Pool{without}, []census.Pod{onNet(other, ip)}, nothing, []report.FindingKind{report.Unrecorded}},
		{"the store has it by now", [][]ipam.Pool{without, withIt}, []census.Pod{onNet(other, ip)}, nothing, nil},
		{"the store cannot be listed again", [][]ipam.Pool{without, nil}, []census.Pod{onNet(other, ip)}, nothing, nil},
		{"two pods show it", [][]ipam.Pool{withIt}, []census.Pod{onNet(other, ip1)}, nothing, []report.FindingKind{report.Duplicate}},
		{"two pods show it, and cannot be read", [][]ipam.Pool{withIt}, []census.Pod{onNet(other, ip1)}, func(call string) error {
			if call != "get pod "+other.String() {
				return nil
			}
			return errors.New("no read")
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lists := tt.lists
			h := newHarness(laterStore{surveyor{fixedStore(overlapping()), []ipam.Network{{
				Name: "net", Range: netip.MustParsePrefix("10.0.0.0/28"), Known: true, Default: true,
				Usable: spansOf("10.0.0.0", "10.0.0.15"), Pools: []string{"small"},
			}}, nil}, &lists})
			h.policy.DryRun = new(true)
			h.pods.Add(onNet(web, ip1))
			h.pods.Add(tt.pods...)
			h.pods.OnCall(tt.call)
			r := h.run(t)
			var got []report.FindingKind
			for _, f := range r.Findings {
				got = append(got, f.Kind)
			}
			equal(t, "findings", got, tt.want)
			unread := strings.Contains(strings.Join(r.Warnings, "\n"), "1 pod could not be read again to tell of it: get pod "+other.String()+": no read")
			equal(t, "says that a pod could not be read", unread, strings.Contains(tt.name, "cannot be read"))
			unlisted := strings.Contains(strings.Join(r.Warnings, "\n"), "could not be listed again to tell of it: no list")
			equal(t, "says that a store could not be listed", unlisted, strings.Contains(tt.name, "cannot be listed"))
			equal(t, "warnings", len(r.Warnings) > 0, len(tt.want) > 0 || unread || unlisted)
			if len(got) == 1 {
				lists = tt.lists
				elsewhere := h.selecting(butNamespace("default")).run(t)
				equal(t, "findings elsewhere", elsewhere.Findings, []report.Finding{})
				equal(t, "warnings elsewhere", elsewhere.Warnings, nil)
				equal(t, "unrecorded in the network", r.Networks[0].Unrecorded == 1, got[0] == report.Unrecorded)
			}
		})
	}
}

// On a node, a finding is an address that a ready sandbox has, and that host-local, which gave it, does not
// have in any folder in which it may be. It is told if the store and the sandboxes, read again, say the same.
func TestAddressesThatHostLocalHasLost(t *testing.T) {
	lost, kept := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.2")
	without := []ipam.Pool{overlapping()[0]}
	withIt := []ipam.Pool{overlapping()[0]}
	a := webAllocation()
	a.Key, a.IP = "9", lost
	withIt[0].Allocations = append(withIt[0].Allocations, a)
	change := func(sandboxes []census.Sandbox, do func(*census.Sandbox)) []census.Sandbox {
		do(&sandboxes[0])
		return sandboxes
	}
	pools := func(names ...string) func(*census.Sandbox) {
		return func(s *census.Sandbox) {
			s.Attachments[0].Pools = nil
			for _, name := range names {
				s.Attachments[0].Pools = append(s.Attachments[0].Pools, ipam.PoolRef{Backend: "fixed", Name: name})
			}
		}
	}
	twice := attached("s2", lost)
	twice[0].Attachments = append(twice[0].Attachments, twice[0].Attachments...)
	for _, tt := range []struct {
		name        string
		lists       [][]ipam.Pool
		first, then []census.Sandbox // nil: as at first
		want        int
	}{
		{"the store does not have it", [][]ipam.Pool{without}, attached("s2", lost), nil, 1},
		{"Multus has an entry, too", [][]ipam.Pool{without}, twice, nil, 1},
		{"the store has it", [][]ipam.Pool{withIt}, attached("s2", lost), nil, 0},
		{"the store has it by now", [][]ipam.Pool{without, withIt}, attached("s2", lost), nil, 0},
		{"the store cannot be listed again", [][]ipam.Pool{without, nil}, attached("s2", lost), nil, 0},
		{"the sandbox does not have it any more", [][]ipam.Pool{without}, attached("s2", lost), attached("s2"), 0},
		{"another sandbox has it by now", [][]ipam.Pool{without}, attached("s2", lost), change(attached("s2", lost), func(s *census.Sandbox) { s.UID = "v" }), 0},
		{"another address, which the store has", [][]ipam.Pool{without}, attached("s2", kept), nil, 0},
		{"another address, which the store does not give", [][]ipam.Pool{without}, attached("s2", netip.MustParseAddr("10.9.0.1")), nil, 0},
		{"a sandbox that is not ready", [][]ipam.Pool{without}, change(attached("s2", lost), func(s *census.Sandbox) { s.Ready = false }), nil, 0},
		{"a sandbox that is not ready any more", [][]ipam.Pool{without}, attached("s2", lost), change(attached("s2", lost), func(s *census.Sandbox) { s.Ready = false }), 0},
		{"host-local did not give it", [][]ipam.Pool{without}, change(attached("s2", lost), pools()), nil, 0},
		{"its folder was not listed", [][]ipam.Pool{without}, change(attached("s2", lost), pools("elsewhere")), nil, 0},
		{"it may be in a folder that was not listed", [][]ipam.Pool{without}, change(attached("s2", lost), pools("small", "elsewhere")), nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(laterStore{surveyor{fixedStore(without), []ipam.Network{{
				Name: "net", Range: netip.MustParsePrefix("10.0.0.0/28"), Known: true, Usable: spansOf("10.0.0.0", "10.0.0.15"), Pools: []string{"small"},
			}}, nil}, &tt.lists})
			h.onNode = true
			h.policy.DryRun = new(true)
			h.pods.AddSandboxes(tt.first...)
			lists := 0
			h.pods.OnCall(func(call string) error {
				if call != "list sandboxes" {
					return nil
				}
				if lists++; lists == 2 && tt.then != nil {
					h.pods.Remove(other)
					h.pods.AddSandboxes(tt.then...)
				}
				return nil
			})
			r := h.run(t)
			equal(t, "findings", len(r.Findings), tt.want)
			if tt.want > 0 {
				equal(t, "finding", r.Findings[0].String(), "pod default/other shows 10.0.0.9 in fixed network net (libcni's cache), and the store does not have it: "+
					"it may give the address to another pod at any time. Delete default/other, so that it gets another address")
			}
			equal(t, "unrecorded in the network", r.Networks[0].Unrecorded, tt.want)
		})
	}
}

// An endpointed is a store that has endpoints for sandboxes.
type endpointed struct {
	fixedStore
	err   error
	asked *[]string
}

func (s endpointed) Endpoints(_ context.Context, as []*ipam.Allocation) []ipam.Endpoint {
	endpoints := make([]ipam.Endpoint, len(as))
	for i, a := range as {
		*s.asked = append(*s.asked, a.Owner.Pod.Name)
		if a.Owner.Pod == other && s.err == nil {
			endpoints[i] = ipam.Endpoint{Name: "n-k8s-" + a.Owner.Pod.Name, Sandbox: a.Owner.Sandbox, Addresses: []netip.Addr{a.IP}}
		}
		endpoints[i].Err = s.err
	}
	return endpoints
}

// What a store still has for the sandbox of an address that is due is told, and how to remove it. What
// is in use is not asked for, nor what waits.
func TestEndpointsOfDueAddressesAreTold(t *testing.T) {
	for _, tt := range []struct {
		name   string
		grace  time.Duration
		err    error
		asked  []string
		warned bool
	}{
		{name: "due", asked: []string{other.Name}},
		{name: "waiting", grace: time.Hour},
		{name: "one could not be read", err: errors.New("no answer"), asked: []string{other.Name}, warned: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mine, gone := webAllocation(), webAllocation()
			gone.Key, gone.IP, gone.Token, gone.Owner.Pod = "2", netip.MustParseAddr("10.0.0.2"), "t2", other
			var asked []string
			h := newHarness(endpointed{fixedStore([]ipam.Pool{poolOf(mine, gone)}), tt.err, &asked})
			h.policy.DryRun, h.policy.GracePeriod = new(true), &policy.Duration{Duration: tt.grace}
			h.pods.Add(showing(web, ip1))
			r := h.run(t)
			equal(t, "asked for", asked, tt.asked)
			note := "its WorkloadEndpoint " + other.Namespace + "/n-k8s-" + other.Name + " still has the address"
			at := slices.IndexFunc(r.Entries, func(e report.Entry) bool { return e.IP == "10.0.0.2" })
			if told := strings.Contains(r.Entries[at].Note, note); told != (len(tt.asked) > 0 && !tt.warned) {
				t.Errorf("note %q", r.Entries[at].Note)
			}
			if warned := strings.Contains(strings.Join(r.Warnings, "\n"), "it is unknown whether endpoints of gone pods"); warned != tt.warned {
				t.Errorf("warnings %q", r.Warnings)
			}
			x, err := report.Explain(r, report.Question{Address: "10.0.0.2"}, nil, nil)
			command := "calicoctl delete workloadendpoint n-k8s-" + other.Name + " --namespace " + other.Namespace
			if told := slices.ContainsFunc(x.Found[0].Remedies, func(r judge.Remedy) bool { return r.Command == command }); err != nil || told != (len(tt.asked) > 0 && !tt.warned) {
				t.Errorf("remedies %+v, %v", x.Found[0].Remedies, err)
			}
		})
	}
}

// In a large cluster, many pods start between the lists: the store is listed again before they are
// counted. A pod that shows many addresses is read once.
func TestFindingsAreLookedAtOnce(t *testing.T) {
	net := netip.MustParsePrefix("10.0.0.0/24")
	pool := ipam.Pool{Name: "small", Range: net, Allocations: []ipam.Allocation{webAllocation()}}
	later := pool
	later.Allocations = slices.Clone(pool.Allocations)
	var started []census.Pod
	crowd := showing(other)
	for i, ip := 0, netip.MustParseAddr("10.0.0.10"); i < 200; i, ip = i+1, ip.Next() {
		pod := showing(ipam.PodRef{Namespace: "shop", Name: "new-" + ip.String()}, ip)
		pod.ByCalico, pod.InStatus, pod.UID = 1, 1, pod.Ref.Name
		started = append(started, pod)
		a := webAllocation()
		a.Key, a.Token, a.IP, a.Owner.Pod = ip.String(), ip.String(), ip, pod.Ref
		later.Allocations = append(later.Allocations, a)
		if i < 50 {
			crowd.Addresses = append(crowd.Addresses, ip)
		}
	}
	crowd.InStatus, crowd.ByCalico = len(crowd.Addresses), len(crowd.Addresses)
	for _, tt := range []struct {
		name  string
		pods  []census.Pod
		want  int
		reads int
	}{
		{"many pods that started", started, 0, 0},
		{"one with many addresses of others", append([]census.Pod{crowd}, started...), 50, 51},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lists, reads := [][]ipam.Pool{{pool}, {later}}, 0
			h := newHarness(laterStore{surveyor{fixedStore{pool}, []ipam.Network{{
				Name: "net", Range: net, Known: true, Default: true, Usable: spansOf("10.0.0.0", "10.0.0.255"), Pools: []string{"small"},
			}}, nil}, &lists})
			h.policy.DryRun = new(true)
			own := showing(web, ip1)
			own.ByCalico, own.InStatus = 1, 1
			h.pods.Add(own)
			h.pods.Add(tt.pods...)
			var mu sync.Mutex
			h.pods.OnCall(func(call string) error {
				mu.Lock()
				defer mu.Unlock()
				if strings.HasPrefix(call, "get pod ") {
					reads++
				}
				return nil
			})
			r := h.run(t)
			equal(t, "findings", len(r.Findings), tt.want)
			equal(t, "reads of pods", reads, tt.reads)
			equal(t, "warnings", len(r.Warnings) > 0, tt.want > 0)
		})
	}
}

// A tenant who writes many addresses of others into an annotation hides no duplicate that is proved.
func TestProvedFindingsAreLookedAtFirst(t *testing.T) {
	net, last := netip.MustParsePrefix("10.0.0.0/24"), netip.MustParseAddr("10.0.0.250")
	pool := ipam.Pool{Name: "small", Range: net, Allocations: []ipam.Allocation{webAllocation()}}
	pod := func(name string, ip netip.Addr) census.Pod {
		pod := showing(ipam.PodRef{Namespace: "shop", Name: name}, ip)
		pod.ByCalico, pod.InStatus, pod.UID = 1, 1, name
		return pod
	}
	liar := pod("liar", netip.MustParseAddr("10.0.0.9"))
	h := newHarness(surveyor{fixedStore{pool}, []ipam.Network{{
		Name: "net", Range: net, Known: true, Default: true, Usable: spansOf("10.0.0.0", "10.0.0.255"), Pools: []string{"small"},
	}}, nil})
	h.policy.DryRun = new(true)
	for i, ip := 0, netip.MustParseAddr("10.0.0.10"); i < 120; i, ip = i+1, ip.Next() {
		h.pods.Add(pod("victim-"+ip.String(), ip))
		liar.Addresses = append(liar.Addresses, ip)
	}
	liar.ByCalico = len(liar.Addresses)
	h.pods.Add(liar, pod("one", last), pod("two", last))
	r := h.run(t)
	equal(t, "findings", len(r.Findings), 100)
	equal(t, "the proved one is told first", strings.Contains(r.Warnings[0], last.String()), true)
	equal(t, "address of the first", r.Findings[0].IP, last.String())
}
