package reaper_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 1. The pod other shows 10.0.0.1, which web's allocation holds too. It depends
// on the network of other's own allocation whether the two are the same address.
func TestAddressShownByPodThatHoldsItElsewhere(t *testing.T) {
	inUse := decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}
	released := decision{reaper.Suspected, reaper.PodAbsent, ""}
	for _, tt := range []struct {
		name           string
		network, where string // of web's pool and of other's
		claim          func(*reaper.Allocation)
		want           decision
	}{
		{"in another network", "blue", "red", nil, released},
		{"in an unnamed network", "blue", "-", nil, released},
		{"in another pool of the same network", "blue", "blue", nil, inUse},
		{"in a network without a name", "blue", "", nil, inUse},
		{"while this network has no name", "", "red", nil, inUse},
		{"in networks without names", "", "", nil, inUse},
		{"in another network, by an allocation that cannot be read", "blue", "red",
			func(a *reaper.Allocation) { a.Unreadable = "half of it is missing" }, inUse},
		{"in another network, at another address", "blue", "red",
			func(a *reaper.Allocation) { a.IP = ip2 }, inUse},
		{"in another network, for another pod", "blue", "red",
			func(a *reaper.Allocation) { a.Owner.Pod.Namespace = "prod" }, inUse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			claim := webAllocation()
			claim.Owner.Pod = other
			if tt.claim != nil {
				tt.claim(&claim)
			}
			here, there := poolOf(webAllocation()), poolOf(claim)
			here.Network, there.Network, there.Name = tt.network, tt.where, "there"
			s := situation{pools: []reaper.Pool{here, there}, pods: []reaper.Pod{showing(other, ip1)}}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1. An allocation in another store says nothing about the networks of this
// one.
func TestAllocationInAnotherBackendProvesNothing(t *testing.T) {
	claim := webAllocation()
	claim.Owner.Pod = other
	here, there := poolOf(webAllocation()), poolOf(claim)
	here.Network, there.Network = "blue", "red"
	census := []reaper.Pod{showing(other, ip1)}
	inv := inventory(t, fixedStore{here}, fixedStore{there})
	decisions := reaper.Judge(noon, situation{}.terms(), inv, censusOf(census...), reaper.Ledger{})
	equal(t, "verdict", decisionOf(decisions[0]), decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"})
}

// Promise 1. The allocation's own pod is a witness, no matter which other network it
// has the address in.
func TestOwnPodKeepsTheAddressInEveryNetwork(t *testing.T) {
	here, there := poolOf(webAllocation()), poolOf(webAllocation())
	here.Network, there.Network, there.Name = "blue", "red", "there"
	s := situation{pools: []reaper.Pool{here, there}, pods: []reaper.Pod{showing(web, ip1)}}
	for _, d := range s.judge(t, noon) {
		equal(t, "verdict", decisionOf(d), decision{reaper.InUse, reaper.PodPresent, ""})
	}
}

// Promise 1.
func TestTwoPodsShowOneAddressAndOneHoldsItElsewhere(t *testing.T) {
	third := reaper.PodRef{Namespace: "default", Name: "third"}
	claim := webAllocation()
	claim.Owner.Pod = other
	here, there := poolOf(webAllocation()), poolOf(claim)
	here.Network, there.Network, there.Name = "blue", "red", "there"
	s := situation{pools: []reaper.Pool{here, there}, pods: []reaper.Pod{showing(other, ip1), showing(third, ip1)}}
	equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/third"})
}
