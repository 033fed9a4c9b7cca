package census_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// Promise 1. A book has every claim on an address: whose it is, what says so, and whether that proves
// it.
func TestBookHasEveryClaimOnAnAddress(t *testing.T) {
	claim := func(kind census.Kind, namespace, name, source string, proves bool) census.Claim {
		by := census.Claimant{Kind: kind, Ref: ipam.PodRef{Namespace: namespace, Name: name}}
		return census.Claim{IP: ip1, By: by, Source: source, Proves: proves}
	}
	pod := func(name, source string, proves bool) census.Claim {
		return claim(census.KindPod, "default", name, source, proves)
	}
	proving := showing(web, ip1, ip2)
	proving.InStatus = 1
	calico := census.Pod{Ref: ipam.PodRef{Namespace: "default", Name: "calico"}, Addresses: []netip.Addr{ip2, ip1}, InStatus: 1}
	tunnel := census.Node{Name: "n1", Tunnels: map[netip.Addr]string{ip1: "tunnel-address"}}
	mapped := netip.MustParseAddr("::ffff:10.0.0.1")
	c := reapertest.Lists{
		Pods:  []census.Pod{proving, finished(showing(other, ip1)), calico},
		Nodes: []census.Node{{Name: "n0"}, tunnel},
		Machines: []census.VirtualMachine{
			{Namespace: "v", Name: "a", Addresses: []netip.Addr{mapped, ip2}}, {Namespace: "v", Name: "b", Addresses: []netip.Addr{ip1}},
		},
	}.Census(t, census.Scope{Nodes: true})
	ended := pod("other", census.NetworkStatus, false)
	ended.Ended = true
	on1 := []census.Claim{
		pod("web", census.PodStatus, true), ended, pod("calico", census.CalicoAnnotation, false),
		claim(census.KindNode, "", "n1", "tunnel-address", true),
		claim(census.KindMachine, "v", "a", census.GuestReport, false), claim(census.KindMachine, "v", "b", census.GuestReport, false),
	}
	equal(t, "on one address", slices.Collect(c.On(ip1)), on1)
	on2 := []census.Claim{
		pod("web", census.NetworkStatus, false), pod("calico", census.PodStatus, true), claim(census.KindMachine, "v", "a", census.GuestReport, false),
	}
	for i := range on2 {
		on2[i].IP = ip2
	}
	equal(t, "on another", slices.Collect(c.On(ip2)), on2)
	equal(t, "on a third", slices.Collect(c.On(netip.MustParseAddr("10.0.0.3"))), nil)
	equal(t, "of the zero book", slices.Collect(census.Book{}.On(ip1)), nil)

	again, err := c.Again(t.Context(), reapertest.Lists{Pods: []census.Pod{calico}}.Cluster())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "on the first, with another list of pods", slices.Collect(again.On(ip1)), on1[2:])
}

// Promise 1. A lookup allocates no memory, so that it costs little in a large cluster.
func TestClaimsAreReadWithoutMemory(t *testing.T) {
	c := census.New(noon, []census.Pod{showing(web, ip1)}, nil)
	book, found := c.Book, 0
	equal(t, "memory", testing.AllocsPerRun(100, func() {
		for claim := range book.On(ip1) {
			if claim.By.Ref == web {
				found++
			}
		}
	}), 0)
	equal(t, "found", found, 101)
}

// A claimant has a name for people, and may be the pod that an allocation names: as that pod, or as
// the virtual machine that makes pods of such names.
func TestClaimants(t *testing.T) {
	launcher := ipam.PodRef{Namespace: "default", Name: "virt-launcher-db-x7k2p"}
	for _, tt := range []struct {
		kind  census.Kind
		ref   ipam.PodRef
		says  string
		maybe []ipam.PodRef
	}{
		{census.KindPod, web, "pod default/web shows the address", []ipam.PodRef{web}},
		{census.KindMachine, ipam.PodRef{Namespace: "default", Name: "db"}, "virtual machine default/db reports the address", []ipam.PodRef{launcher}},
		{census.KindMachine, web, "virtual machine default/web reports the address", nil},
		{census.KindMachine, ipam.PodRef{Namespace: "prod", Name: "db"}, "virtual machine prod/db reports the address", nil},
		{census.KindNode, ipam.PodRef{Name: "n1"}, "node n1 shows the address", nil},
		{census.KindStoreNode, ipam.PodRef{Name: "n1"}, "stored node n1 shows the address", nil},
	} {
		claim := census.Claim{By: census.Claimant{Kind: tt.kind, Ref: tt.ref}}
		equal(t, "words", claim.String(), tt.says)
		var maybe []ipam.PodRef
		for _, pod := range []ipam.PodRef{web, launcher, {}, {Name: "n1"}} {
			if claim.By.MayBe(pod) {
				maybe = append(maybe, pod)
			}
		}
		equal(t, "may be, of "+tt.says, maybe, tt.maybe)
	}
}
