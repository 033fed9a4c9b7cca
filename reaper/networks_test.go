package reaper_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 1. The pod other shows 10.0.0.1, which web's entry holds too. Whether
// it shows the same one depends on where its own entry is.
func TestAddressShownByPodThatHoldsItElsewhere(t *testing.T) {
	protected := finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}
	released := finding{reaper.Suspected, reaper.PodAbsent, ""}
	for _, tt := range []struct {
		name           string
		network, where string // of web's pool and of other's
		claim          func(*reaper.Allocation)
		want           finding
	}{
		{"in another network", "blue", "red", nil, released},
		{"in an unnamed network", "blue", "-", nil, released},
		{"in another pool of the same network", "blue", "blue", nil, protected},
		{"in a network that is not told", "blue", "", nil, protected},
		{"while this network is not told", "", "red", nil, protected},
		{"in networks that are not told", "", "", nil, protected},
		{"in another network, by an entry that cannot be read", "blue", "red",
			func(r *reaper.Allocation) { r.Unreadable = "half of it is missing" }, protected},
		{"in another network, at another address", "blue", "red",
			func(r *reaper.Allocation) { r.IP = ip2 }, protected},
		{"in another network, for somebody else", "blue", "red",
			func(r *reaper.Allocation) { r.Owner.Pod.Namespace = "prod" }, protected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			claim := webEntry()
			claim.Owner.Pod = other
			if tt.claim != nil {
				tt.claim(&claim)
			}
			here, there := poolOf(webEntry()), poolOf(claim)
			here.Network, there.Network, there.Name = tt.network, tt.where, "there"
			s := scene{pools: []reaper.Pool{here, there}, pods: []reaper.Pod{showing(other, ip1)}}
			equal(t, "verdict", found(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1. A claim in another store says nothing about the networks of this
// one.
func TestClaimInAnotherBackendIsNoClaim(t *testing.T) {
	claim := webEntry()
	claim.Owner.Pod = other
	here, there := poolOf(webEntry()), poolOf(claim)
	here.Network, there.Network = "blue", "red"
	census := []reaper.Pod{showing(other, ip1)}
	inv := inventory(t, fixedStore{here}, fixedStore{there})
	decisions := reaper.Judge(noon, scene{}.terms(), inv, censusOf(census...), reaper.Ledger{})
	equal(t, "verdict", found(decisions[0]), finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"})
}

// Promise 1. The entry's own pod is a witness in whatever network.
func TestOwnPodProtectsWhateverItHoldsElsewhere(t *testing.T) {
	here, there := poolOf(webEntry()), poolOf(webEntry())
	here.Network, there.Network, there.Name = "blue", "red", "there"
	s := scene{pools: []reaper.Pool{here, there}, pods: []reaper.Pod{showing(web, ip1)}}
	for _, v := range s.judge(t, noon) {
		equal(t, "verdict", found(v), finding{reaper.InUse, reaper.PodPresent, ""})
	}
}

// Promise 1.
func TestTwoPodsShowOneAddressAndOneHoldsItElsewhere(t *testing.T) {
	third := reaper.PodRef{Namespace: "default", Name: "third"}
	claim := webEntry()
	claim.Owner.Pod = other
	here, there := poolOf(webEntry()), poolOf(claim)
	here.Network, there.Network, there.Name = "blue", "red", "there"
	s := scene{pools: []reaper.Pool{here, there}, pods: []reaper.Pod{showing(other, ip1), showing(third, ip1)}}
	equal(t, "verdict", found(s.judge(t, noon)[0]), finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/third"})
}
