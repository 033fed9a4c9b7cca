package judge_test

import (
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

func TestSelection(t *testing.T) {
	a := webAllocation()
	a.Owner.Node = "n1"
	pool := poolOf(a)
	pool.Name = "kube-system/10.0.0.0-24"
	names := func(list ...string) []string { return list }
	for _, tt := range []struct {
		selection judge.Selection
		want      bool
		text      string
	}{
		{judge.Selection{}, true, ""},
		{judge.Selection{Namespaces: names("default")}, true, "namespace default"},
		{judge.Selection{Namespaces: names("other", "default")}, true, "namespace other or default"},
		{judge.Selection{ExcludedNamespaces: names("other")}, true, "any namespace but other"},
		{judge.Selection{ExcludedNamespaces: names("other", "default")}, false, "any namespace but other or default"},
		{judge.Selection{ExcludedNamespaces: names("other"), Nodes: names("n2")}, false, "any namespace but other, node n2"},
		{judge.Selection{Pods: names("default/web")}, true, "pod default/web"},
		{judge.Selection{Pods: names("other/web")}, false, "pod other/web"},
		{judge.Selection{Nodes: names("n1")}, true, "node n1"},
		{judge.Selection{Backends: names("fixed")}, true, "backend fixed"},
		{judge.Selection{Pools: names("10.0.0.0-24")}, true, "pool 10.0.0.0-24"},
		{judge.Selection{Addresses: []netip.Addr{ip1}}, true, "address 10.0.0.1"},
		{judge.Selection{Addresses: []netip.Addr{ip2, ip1}}, true, "address 10.0.0.2 or 10.0.0.1"},
		{judge.Selection{Addresses: []netip.Addr{ip2}}, false, "address 10.0.0.2"},
		{judge.Selection{Addresses: []netip.Addr{ip1}, Pods: names("other/web")}, false, "pod other/web, address 10.0.0.1"},
		{judge.Selection{Namespaces: names("default"), Nodes: names("n2")}, false, "namespace default, node n2"},
		{judge.Selection{Namespaces: names("default"), Nodes: names("n1")}, true, "namespace default, node n1"},
	} {
		for range tt.selection.Pools {
			tt.selection.Found = map[ipam.PoolRef]bool{{Backend: "fixed", Name: pool.Name}: true}
		}
		s := situation{pools: []ipam.Pool{pool}, nodes: []census.Node{ready("n1"), ready("n2")}}
		selected := tt.selection.Of(s.judge(t, noon))
		equal(t, "selected by "+tt.text, selected == nil || selected[0], tt.want)
		equal(t, "text", tt.selection.String(), tt.text)
		equal(t, "everything", tt.selection.Everything(), tt.text == "")
	}
}

// Promise 1. What one ADD made is selected together: the siblings of a group, and those of one pod and one
// address in several stores.
func TestWhatOneADDMadeIsSelectedTogether(t *testing.T) {
	alloc := func(group, pod string, n byte) ipam.Allocation {
		a := ipam.Allocation{Key: group + pod, Token: "t", IP: ip(n), Group: group}
		if pod != "" {
			a.Owner.Pod = ipam.PodRef{Namespace: "default", Name: pod}
		}
		return a
	}
	handle := alloc("", "web", 1)
	handle.EmptyHandle = true
	for _, tt := range []struct {
		name string
		as   []ipam.Allocation // the first one alone is on n1
		want []bool
	}{
		{"of its group", []ipam.Allocation{alloc("g", "web", 1), alloc("g", "", 2), alloc("h", "", 3)}, []bool{true, true, false}},
		{"of its pod and address", []ipam.Allocation{alloc("", "web", 1), alloc("", "web", 1), alloc("", "web", 2), alloc("", "other", 1)},
			[]bool{true, true, false, false}},
		{"of the group of one of these", []ipam.Allocation{alloc("g", "web", 1), alloc("h", "web", 1), alloc("h", "", 2)}, []bool{true, true, true}},
		{"without a pod or a group", []ipam.Allocation{alloc("", "", 1), alloc("", "", 1)}, []bool{true, false}},
		{"without an address", []ipam.Allocation{alloc("", "web", 1), handle}, []bool{true, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.as[0].Owner.Node = "n1"
			s := situation{pools: []ipam.Pool{poolOf(tt.as...)}}
			equal(t, "selected", judge.Selection{Nodes: []string{"n1"}}.Of(s.judge(t, noon)), tt.want)
			equal(t, "selected by the zero selection", judge.Selection{}.Of(s.judge(t, noon)), nil)
		})
	}
}

// Promise 1. An address is selected in every network, in any form, with what the same ADD allocated, and
// nothing else.
func TestAnAddressIsSelectedWithItsSiblings(t *testing.T) {
	alloc := func(address, group, pod string) ipam.Allocation {
		a := ipam.Allocation{Key: address + group + pod, Token: "t", IP: netip.MustParseAddr(address), Group: group}
		if pod != "" {
			a.Owner.Pod = ipam.PodRef{Namespace: "default", Name: pod}
		}
		return a
	}
	handle := alloc("10.0.0.1", "", "web")
	handle.EmptyHandle, handle.IP = true, netip.Addr{}
	here := poolOf(alloc("10.0.0.1", "g", "web"), alloc("fd00::1", "g", "web"), alloc("10.0.0.2", "", "web"), alloc("10.0.0.3", "", ""), handle)
	there := poolOf(alloc("::ffff:10.0.0.1", "", "other"), alloc("10.0.0.11", "", "other"))
	there.Name, there.Network = "there", "+"
	decisions := situation{pools: []ipam.Pool{here, there}}.judge(t, noon)
	for _, tt := range []struct {
		selection judge.Selection
		want      []bool
	}{
		{judge.Selection{Addresses: []netip.Addr{ip1}}, []bool{true, true, false, false, false, true, false}},
		{judge.Selection{Addresses: []netip.Addr{ip1, ip(3)}}, []bool{true, true, false, true, false, true, false}},
		{judge.Selection{Addresses: []netip.Addr{ip1}, Pods: []string{"default/web"}}, []bool{true, true, false, false, false, false, false}},
		{judge.Selection{Addresses: []netip.Addr{ip1}, Pools: []string{"there"}, Found: map[ipam.PoolRef]bool{{Backend: "fixed", Name: "there"}: true}},
			[]bool{false, false, false, false, false, true, false}},
		{judge.Selection{Addresses: []netip.Addr{ip(9)}}, make([]bool, 7)},
	} {
		equal(t, "selected by "+tt.selection.String(), tt.selection.Of(decisions), tt.want)
	}
}

// Promise 1. Nothing that one ADD made for an excluded namespace is selected, and nothing that may be
// of one: without a namespace, or bound to an excluded one by its group.
func TestWhatMayBeOfAnExcludedNamespaceIsNotSelected(t *testing.T) {
	alloc := func(namespace, group string, n byte) ipam.Allocation {
		a := ipam.Allocation{Key: namespace + group, Token: "t", IP: ip(n), Group: group}
		if namespace != "" {
			a.Owner.Pod = ipam.PodRef{Namespace: namespace, Name: "web"}
		}
		return a
	}
	as := []ipam.Allocation{alloc("shop", "", 1), alloc("", "", 2), alloc("cart", "", 3), alloc("shop", "g", 4), alloc("cart", "g", 5),
		alloc("shop", "h", 6), alloc("", "h", 7)}
	s := situation{pools: []ipam.Pool{poolOf(as...)}}
	equal(t, "selected", judge.Selection{ExcludedNamespaces: []string{"cart"}}.Of(s.judge(t, noon)),
		[]bool{true, false, false, false, false, true, true})
}

// In a journal, one ADD made the records of one sandbox and interface.
func TestRecordsOfOneADDAreSelectedTogether(t *testing.T) {
	records := []ipam.Record{
		{Pool: "a", Key: "1", IP: "10.0.0.1", Owner: ipam.EntryOwner{Node: "n1", Sandbox: "s1", Interface: "net1"}},
		{Pool: "b", Key: "2", IP: "10.0.0.2", Owner: ipam.EntryOwner{Sandbox: "s1", Interface: "net1"}},
		{Pool: "b", Key: "3", IP: "10.0.0.3", Owner: ipam.EntryOwner{Sandbox: "s1", Interface: "net2"}},
		{Pool: "b", Key: "4", Owner: ipam.EntryOwner{}},
	}
	equal(t, "selected", judge.Selection{Nodes: []string{"n1"}}.OfRecords(records), []bool{true, true, false, false})
	equal(t, "selected by the zero selection", judge.Selection{}.OfRecords(records), nil)
}
