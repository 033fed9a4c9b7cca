package report_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// lanLayout has Calico's IPPool 10.0.0.0/16 and the ranges of two attachments of Whereabouts, both
// of 192.168.7.0/24 but for the gateway, in different networks.
func lanLayout() report.Layout {
	lan := netip.MustParsePrefix("192.168.7.0/24")
	usable := ipam.NewSpans(ipam.SpanOf(lan)).Without(ipam.NewSpans(ipam.Span{First: lan.Addr(), Last: lan.Addr().Next()}))
	listings := []ipam.Listing{
		{Backend: "calico", Whole: true, Pools: []ipam.Pool{{Name: "block", Range: netip.MustParsePrefix("10.0.0.0/26")}}},
		{Backend: "whereabouts", Whole: true, Pools: []ipam.Pool{{Name: "ns/a", Range: lan, Network: "a"}, {Name: "ns/b", Range: lan, Network: "b"}}},
	}
	y := report.NewLayout(ipam.Inventory{Listings: listings})
	all := netip.MustParsePrefix("10.0.0.0/16")
	y.AddNetworks(listings[0], []ipam.Network{{Name: "p", Range: all, Known: true, Usable: ipam.NewSpans(ipam.SpanOf(all)), Default: true, Pools: []string{"block"}}})
	y.AddNetworks(listings[1], []ipam.Network{
		{Name: "a", Range: lan, Known: true, Usable: usable, Attachments: []string{"app/a"}, Pools: []string{"ns/a"}, Unique: "a"},
		{Name: "b", Range: lan, Known: true, Usable: usable, Pools: []string{"ns/b"}, Unique: "b"},
	})
	return y
}

// onCalico returns a pod that has its first address by its status and by Calico's annotations.
func onCalico(name string, ips ...string) census.Pod {
	pod := census.Pod{Ref: ipam.PodRef{Namespace: "app", Name: name}, UID: name, Node: "n1", ByCalico: 1, InStatus: 1}
	for _, ip := range ips {
		pod.Addresses = append(pod.Addresses, netip.MustParseAddr(ip))
	}
	return pod
}

// onLAN returns such a pod whose second address is that of an attachment.
func onLAN(name, attachment, ip, lan string) census.Pod {
	pod := onCalico(name, ip, lan)
	pod.Interfaces = []census.Interface{
		{Name: "eth0", Network: "k8s-pod-network", Addresses: pod.Addresses[:1]},
		{Name: "net1", Network: attachment, Addresses: pod.Addresses[1:]},
	}
	return pod
}

// with returns the pod after a change.
func with(pod census.Pod, change func(*census.Pod)) census.Pod {
	change(&pod)
	return pod
}

func TestFindingsAreOfLivePodsInOneNetwork(t *testing.T) {
	recorded := func(backend, pool, ip, pod string) ipam.Allocation {
		return ipam.Allocation{Backend: backend, Pool: pool, IP: netip.MustParseAddr(ip), Owner: ipam.Owner{Pod: ipam.PodRef{Namespace: "app", Name: pod}}}
	}
	reserved := func(network, ip, pod string) ipam.Allocation {
		a := recorded("overlapping", "ns/"+network+"-"+ip, ip, pod)
		a.Network = network
		return a
	}
	// Calico has the address of this pod in each case, so its IPAM is in use.
	one, oneHas := onCalico("one", "10.0.0.1"), recorded("calico", "block", "10.0.0.1", "one")
	unsure := func(p *census.Pod) { p.ByCalico = 0 }
	for _, tt := range []struct {
		name    string
		pods    []census.Pod
		has     []ipam.Allocation
		partial bool
		want    []string // kind, address, network and pods
	}{
		{name: "two pods with one address", pods: []census.Pod{onCalico("two", "10.0.0.1")}, want: []string{"duplicate 10.0.0.1 p one two, of one"}},
		{name: "by their status alone", pods: []census.Pod{with(onCalico("two", "10.0.0.1"), unsure)}, want: []string{"duplicate 10.0.0.1 p one two, of one"}},
		{name: "two on one that nobody has", pods: []census.Pod{onCalico("two", "10.0.0.2"), onCalico("three", "10.0.0.2")}, want: []string{"duplicate 10.0.0.2 p three two"}},
		{name: "one is finished", pods: []census.Pod{with(onCalico("two", "10.0.0.1"), func(p *census.Pod) { p.Finished = true })}},
		{name: "one is Terminating", pods: []census.Pod{with(onCalico("two", "10.0.0.1"), func(p *census.Pod) { p.Deadline = time.Unix(1, 0) })}},
		{name: "one has no sandbox", pods: []census.Pod{with(onCalico("two", "10.0.0.1"), func(p *census.Pod) { p.NoSandbox = true })}},
		{name: "one is on the host's network", pods: []census.Pod{with(onCalico("two", "10.0.0.1"), func(p *census.Pod) { p.HostNetwork = true })}},
		{name: "the launchers of a machine that migrates", pods: []census.Pod{onCalico("virt-launcher-vm-abcde", "10.0.0.2"), onCalico("virt-launcher-vm-fghij", "10.0.0.2")},
			has: []ipam.Allocation{recorded("calico", "block", "10.0.0.2", "virt-launcher-vm-abcde")}},
		{name: "the launchers of two machines", pods: []census.Pod{onCalico("virt-launcher-vm-abcde", "10.0.0.1"), onCalico("virt-launcher-other-fghij", "10.0.0.1")},
			want: []string{"duplicate 10.0.0.1 p one virt-launcher-other-fghij virt-launcher-vm-abcde, of one"}},
		{name: "one address in two networks", pods: []census.Pod{onLAN("two", "app/a", "10.0.0.2", "192.168.7.2"), onLAN("three", "app/b", "10.0.0.3", "192.168.7.2")},
			has: []ipam.Allocation{
				recorded("calico", "block", "10.0.0.2", "two"), recorded("calico", "block", "10.0.0.3", "three"),
				recorded("whereabouts", "ns/a", "192.168.7.2", "two"), recorded("whereabouts", "ns/b", "192.168.7.2", "three"),
			}},
		{name: "one address of an attachment twice", pods: []census.Pod{onLAN("two", "app/a", "10.0.0.2", "192.168.7.2"), onLAN("three", "app/a", "10.0.0.3", "192.168.7.2")},
			has: []ipam.Allocation{
				recorded("calico", "block", "10.0.0.2", "two"), recorded("calico", "block", "10.0.0.3", "three"), recorded("whereabouts", "ns/a", "192.168.7.2", "two"),
			}, want: []string{"duplicate 192.168.7.2 a three two, of two"}},
		{name: "one that another network has for a third pod", pods: []census.Pod{onLAN("two", "app/a", "10.0.0.2", "192.168.7.2"), onLAN("three", "app/a", "10.0.0.3", "192.168.7.2")},
			has: []ipam.Allocation{
				recorded("calico", "block", "10.0.0.2", "two"), recorded("calico", "block", "10.0.0.3", "three"),
				recorded("whereabouts", "ns/a", "192.168.7.2", "two"), recorded("whereabouts", "ns/b", "192.168.7.2", "four"),
			}, want: []string{"duplicate 192.168.7.2 a three two, of two"}},

		{name: "an address that no store has", pods: []census.Pod{onCalico("two", "10.0.0.2")}, want: []string{"unrecorded 10.0.0.2 p two"}},
		{name: "not certainly of Calico", pods: []census.Pod{with(onCalico("two", "10.0.0.2"), unsure)}},
		{name: "outside of Calico's pools", pods: []census.Pod{onCalico("two", "172.16.0.1")}},
		{name: "a pod's own network beside a range", pods: []census.Pod{onCalico("two", "192.168.7.2")}},
		{name: "of an attachment", pods: []census.Pod{onLAN("two", "app/a", "10.0.0.2", "192.168.7.2")},
			has: []ipam.Allocation{recorded("calico", "block", "10.0.0.2", "two")}, want: []string{"unrecorded 192.168.7.2 a two"}},
		{name: "of an attachment, and not handed out", pods: []census.Pod{onLAN("two", "app/a", "10.0.0.2", "192.168.7.1")},
			has: []ipam.Allocation{recorded("calico", "block", "10.0.0.2", "two")}},
		{name: "of an attachment that nothing is known of", pods: []census.Pod{onLAN("two", "app/x", "10.0.0.2", "192.168.7.2")},
			has: []ipam.Allocation{recorded("calico", "block", "10.0.0.2", "two")}},
		{name: "of one through which another pod has what its store says", pods: []census.Pod{onLAN("two", "app/x", "10.0.0.2", "192.168.7.2"), onLAN("three", "app/x", "10.0.0.3", "192.168.7.3")},
			has: []ipam.Allocation{
				recorded("calico", "block", "10.0.0.2", "two"), recorded("calico", "block", "10.0.0.3", "three"), recorded("whereabouts", "ns/b", "192.168.7.3", "three"),
			}, want: []string{"unrecorded 192.168.7.2 b two"}},
		{name: "what only a reservation has", pods: []census.Pod{onLAN("two", "app/a", "10.0.0.2", "192.168.7.2")},
			has: []ipam.Allocation{recorded("calico", "block", "10.0.0.2", "two"), reserved("a", "192.168.7.2", "two")}},
		{name: "what only a reservation of another network has", pods: []census.Pod{onLAN("two", "app/a", "10.0.0.2", "192.168.7.2")},
			has: []ipam.Allocation{recorded("calico", "block", "10.0.0.2", "two"), reserved("b", "192.168.7.2", "three")}, want: []string{"unrecorded 192.168.7.2 a two"}},
		{name: "what another pool of the store has for the pod", pods: []census.Pod{onLAN("two", "app/a", "10.0.0.2", "192.168.7.2")},
			has: []ipam.Allocation{recorded("calico", "block", "10.0.0.2", "two"), recorded("whereabouts", "ns/b", "192.168.7.2", "two")}},
		{name: "of an attachment whose network is known, while an older pod has an address of another one",
			pods: []census.Pod{onLAN("two", "app/a", "10.0.0.2", "192.168.7.2"), onLAN("old", "app/a", "10.0.0.3", "192.168.7.3")},
			has: []ipam.Allocation{
				recorded("calico", "block", "10.0.0.2", "two"), recorded("calico", "block", "10.0.0.3", "old"),
				recorded("whereabouts", "ns/a", "192.168.7.2", "two"), recorded("whereabouts", "ns/b", "192.168.7.3", "old"),
			}},
		{name: "while a pool could not be read", pods: []census.Pod{onCalico("two", "10.0.0.2")}, partial: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inv := ipam.Inventory{Listings: []ipam.Listing{{Backend: "calico", Whole: !tt.partial, Pools: []ipam.Pool{{Name: "any", Allocations: append(tt.has, oneHas)}}}}}
			var got []string
			for _, f := range lanLayout().Findings(inv, census.New(time.Unix(1, 0), append(tt.pods, one), nil)) {
				text := string(f.Kind) + " " + f.IP + " " + f.Network
				for pod := range f.Pods {
					text += " " + pod.Name
				}
				for _, pod := range f.Stored {
					text += ", of " + pod[len("app/"):]
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// A plugin of Calico may have another IPAM, such as host-local, while nodes get the addresses of their
// tunnels from Calico's. Then Calico may still have what it gave before, for pods that are gone.
func TestPodsOfAnotherIPAMAreNotUnrecorded(t *testing.T) {
	c := census.New(time.Unix(1, 0), []census.Pod{onCalico("one", "10.0.0.1"), onCalico("two", "10.0.0.2")}, nil)
	tunnel := ipam.Allocation{Backend: "calico", Pool: "block", IP: netip.MustParseAddr("10.0.0.1"), Owner: ipam.Owner{Node: "n1"}}
	gone := ipam.Allocation{Backend: "calico", Pool: "block", IP: tunnel.IP, Owner: ipam.Owner{Pod: ipam.PodRef{Namespace: "app", Name: "gone"}}}
	for _, has := range [][]ipam.Allocation{nil, {tunnel}, {gone}} {
		inv := ipam.Inventory{Listings: []ipam.Listing{{Backend: "calico", Whole: true, Pools: []ipam.Pool{{Name: "block", Allocations: has}}}}}
		if found := lanLayout().Findings(inv, c); len(found) > 0 {
			t.Errorf("found %v with %v, want nothing", found, has)
		}
	}
}

// A finding is told if the pods are still there, and still show the address.
func TestFindingIsConfirmedByWhatItsPodsShowNow(t *testing.T) {
	one, two := onCalico("one", "10.0.0.1"), onCalico("two", "10.0.0.1")
	pods := map[string]census.Pod{"one": one, "two": two}
	found := lanLayout().Findings(ipam.Inventory{}, census.New(time.Unix(1, 0), []census.Pod{one, two}, nil))
	for name, tt := range map[string]struct {
		change   func(*census.Pod)
		presence census.Presence
		want     bool
	}{
		"nothing changed":               {func(*census.Pod) {}, census.Present, true},
		"one is gone":                   {func(*census.Pod) {}, census.Absent, false},
		"one could not be read":         {func(*census.Pod) {}, census.Unknown, false},
		"one is another pod by now":     {func(p *census.Pod) { p.UID = "new" }, census.Present, false},
		"one shows another address":     {func(p *census.Pod) { p.Addresses = nil }, census.Present, false},
		"one is being deleted":          {func(p *census.Pod) { p.Deadline = time.Unix(1, 0) }, census.Present, false},
		"one has ended in the meantime": {func(p *census.Pod) { p.Finished = true }, census.Present, false},
	} {
		_, got := found[0].Confirmed(func(ref ipam.PodRef) (census.Pod, census.Presence) {
			pod := pods[ref.Name]
			if ref.Name == "two" {
				tt.change(&pod)
				return pod, tt.presence
			}
			return pod, census.Present
		})
		if got != tt.want {
			t.Errorf("%s: confirmed %v, want %v", name, got, tt.want)
		}
	}
}

// Two blocks of Calico that have the same addresses are told, with the live pods in both. Pools of other
// stores overlap by design.
func TestOverlappingBlocks(t *testing.T) {
	pool := func(in string, exclusive bool, ips ...string) ipam.Pool {
		p := ipam.Pool{Name: in, Range: netip.MustParsePrefix(in), Exclusive: exclusive}
		for _, ip := range ips {
			p.Allocations = append(p.Allocations, ipam.Allocation{
				Pool: in, IP: netip.MustParseAddr(ip), Owner: ipam.Owner{Pod: ipam.PodRef{Namespace: "app", Name: "of-" + ip}},
			})
		}
		return p
	}
	inv := ipam.Inventory{Listings: []ipam.Listing{
		{Backend: "calico", Whole: true, Pools: []ipam.Pool{
			pool("10.0.0.64/26", true, "10.0.0.66"), pool("10.0.0.16/28", true, "10.0.0.17"), pool("10.0.0.0/26", true, "10.0.0.17", "10.0.0.40"),
			pool("fd00::/122", true), pool("10.0.0.24/29", true), {Name: "handles"},
		}},
		{Backend: "whereabouts", Whole: true, Pools: []ipam.Pool{pool("192.168.0.0/24", false), pool("192.168.0.0/25", false)}},
	}}
	y := report.NewLayout(inv)
	y.AddNetworks(inv.Listings[0], []ipam.Network{{Name: "p", Range: netip.MustParsePrefix("10.0.0.0/16"), Pools: []string{"10.0.0.16/28"}}})
	ended := with(onCalico("ended", "10.0.0.18"), func(p *census.Pod) { p.Finished = true })
	c := census.New(time.Now(), []census.Pod{onCalico("in", "10.0.0.17"), onCalico("outside", "10.0.0.40"), onCalico("beside", "10.0.0.66"), ended}, nil)
	got := y.Findings(inv, c)
	want := []report.Finding{
		{
			Kind: report.Overlap, Backend: "calico", Network: "p", Range: "10.0.0.16/28", Pools: []string{"10.0.0.0/26", "10.0.0.16/28"}, Recorded: true,
			Claims: []report.ShownBy{{Namespace: "app", Pod: "in", IP: "10.0.0.17", Node: "n1", Source: "pod status", Proved: true, UID: "in"}}, Stored: []string{"app/of-10.0.0.17"},
		},
		{
			Kind: report.Overlap, Backend: "calico", Range: "10.0.0.24/29", Pools: []string{"10.0.0.16/28", "10.0.0.24/29"}, Recorded: true,
			Claims: []report.ShownBy{}, Stored: []string{},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("findings (-want +got):\n%s", diff)
	}
	says := "calico blocks 10.0.0.0/26 and 10.0.0.16/28 overlap, so that an address of 10.0.0.16/28 may be given to two pods; live in it: 10.0.0.17 of app/in. " +
		"Keep the block whose size is the blockSize of its IPPool, and delete the pods of the other one"
	if got[0].String() != says || !got[0].Proved() {
		t.Errorf("it says %q, proved %v", got[0], got[0].Proved())
	}
	if _, still := got[0].Confirmed(func(ipam.PodRef) (census.Pod, census.Presence) { return census.Pod{}, census.Absent }); !still {
		t.Error("an overlap ends with a pod")
	}
}

func TestSelectionNarrowsFindings(t *testing.T) {
	y := lanLayout()
	found := []report.Finding{
		{Kind: report.Duplicate, IP: "192.168.7.9", Backend: "whereabouts", Network: "a", Stored: []string{"cart/z"},
			Claims: []report.ShownBy{{Namespace: "app", Pod: "x", Node: "n1"}, {Namespace: "shop", Pod: "y", Node: "n2"}}},
		{Kind: report.Overlap, Backend: "calico", Network: "p", Pools: []string{"left", "right"}},
	}
	pool := func(backend, name string) judge.Selection {
		return judge.Selection{Pools: []string{name}, Found: map[ipam.PoolRef]bool{{Backend: backend, Name: name}: true}}
	}
	for _, tt := range []struct {
		name string
		s    judge.Selection
		want string // the kinds that are left
	}{
		{"all", judge.Selection{}, "duplicate overlap"},
		{"the network", pool("whereabouts", "ns/a"), "duplicate"},
		{"another one", pool("whereabouts", "ns/b"), ""},
		{"a block of two that overlap", pool("calico", "left"), "overlap"},
		{"another block of their network", pool("calico", "block"), ""},
		{"the namespace of a pod that shows it", judge.Selection{Namespaces: []string{"shop"}}, "duplicate"},
		{"another namespace", judge.Selection{Namespaces: []string{"payments"}}, ""},
		{"a pod", judge.Selection{Pods: []string{"app/x"}}, "duplicate"},
		{"the node of a pod", judge.Selection{Nodes: []string{"n2"}}, "duplicate"},
		{"another node", judge.Selection{Nodes: []string{"n6"}}, ""},
		{"the address", judge.Selection{Addresses: []netip.Addr{netip.MustParseAddr("192.168.7.9")}}, "duplicate"},
		{"another address", judge.Selection{Addresses: []netip.Addr{netip.MustParseAddr("192.168.7.8")}}, ""},
		{"another backend", judge.Selection{Backends: []string{"overlapping"}}, ""},
	} {
		var kinds []string
		for _, f := range y.Selected(found, tt.s) {
			kinds = append(kinds, string(f.Kind))
		}
		if got := strings.Join(kinds, " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The launchers of a machine that migrates are no duplicate, also if a third pod showed the address
// and is gone by now.
func TestLaunchersAreLeftOfAFinding(t *testing.T) {
	pods := []census.Pod{onCalico("virt-launcher-vm-abcde", "10.0.0.1"), onCalico("virt-launcher-vm-fghij", "10.0.0.1"), onCalico("one", "10.0.0.1")}
	found := lanLayout().Findings(ipam.Inventory{}, census.New(time.Unix(1, 0), pods, nil))
	for gone, want := range map[string]bool{"": true, "virt-launcher-vm-abcde": true, "one": false} {
		_, got := found[0].Confirmed(func(ref ipam.PodRef) (census.Pod, census.Presence) {
			i := slices.IndexFunc(pods, func(p census.Pod) bool { return p.Ref == ref })
			if ref.Name == gone {
				return census.Pod{}, census.Absent
			}
			return pods[i], census.Present
		})
		if got != want {
			t.Errorf("without %q: confirmed %v, want %v", gone, got, want)
		}
	}
}

func TestRemedyNamesThePodsThatTheStoreDoesNotHave(t *testing.T) {
	for _, tt := range []struct {
		pods, stored []string
		want         string
	}{
		{[]string{"one", "two"}, []string{"app/one"}, "Delete app/two, so that it gets another address"},
		{[]string{"one", "two"}, nil, "Delete all of these pods but one, so that the others get other addresses"},
		{[]string{"one", "two"}, []string{"app/one", "app/two"}, "Delete all of these pods but one, so that the others get other addresses"},
		{[]string{"one", "virt-launcher-vm-abcde"}, []string{"app/one"}, "Restart the virtual machine of app/virt-launcher-vm-abcde, so that it gets another address"},
		{[]string{"one", "virt-launcher-vm-abcde"}, []string{"app/virt-launcher-vm-abcde"}, "Delete app/one, so that it gets another address"},
	} {
		f := report.Finding{Kind: report.Duplicate, Stored: tt.stored}
		for _, pod := range tt.pods {
			f.Claims = append(f.Claims, report.ShownBy{Namespace: "app", Pod: pod})
		}
		if got := f.Remedy(); got != tt.want {
			t.Errorf("%v, of which the store has %v: %s, want %s", tt.pods, tt.stored, got, tt.want)
		}
	}
}
