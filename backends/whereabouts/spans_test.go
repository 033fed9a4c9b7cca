package whereabouts

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Spans contain the addresses that one of the networks contains, as package net sees it.
// They are in order and apart.
func TestSpansContainWhatTheNetworksContain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var networks []*net.IPNet
		for range rapid.IntRange(0, 8).Draw(t, "networks") {
			host, bits := rapid.IntRange(0, 255).Draw(t, "host"), rapid.IntRange(22, 32).Draw(t, "bits")
			text := rapid.SampledFrom([]string{
				fmt.Sprintf("10.0.0.%d/%d", host, bits), fmt.Sprintf("::ffff:10.0.0.%d/%d", host, bits+96),
				fmt.Sprintf("fd00::%x/%d", host, bits+96), "0.0.0.0/0", "::/0", "::ffff:0:0/95", "255.255.255.0/24",
			}).Draw(t, "network")
			_, n, err := net.ParseCIDR(text)
			if err != nil {
				t.Fatal(err)
			}
			networks = append(networks, n)
		}
		all := spansOf(networks)
		for i, s := range all {
			if s.Last.Less(s.First) || i > 0 && !all[i-1].Last.Less(s.First) {
				t.Fatalf("%v are not in order", all)
			}
		}
		host := rapid.IntRange(0, 255).Draw(t, "address")
		for _, text := range []string{"10.0.0.%d", "10.0.1.%d", "9.255.255.%d", "fd00::%x", "fd00::1%02x", "255.255.255.%d", "::%x"} {
			ip := netip.MustParseAddr(fmt.Sprintf(text, host))
			want := slices.ContainsFunc(networks, func(n *net.IPNet) bool { return n.Contains(ip.AsSlice()) })
			if got := all.Contains(ip); got != want {
				t.Errorf("%s in %v: %t, want %t", ip, networks, got, want)
			}
		}
	})
}
