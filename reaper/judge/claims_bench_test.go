package judge_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// BenchmarkClaimWarnings judges 20,000 allocations of pods that are gone, and finds those that annotations
// of other pods alone keep: none of them, and all.
func BenchmarkClaimWarnings(b *testing.B) {
	const leaked, each = 20000, 100
	var pool ipam.Pool
	pods := make([]census.Pod, leaked/each)
	for i := range leaked {
		ip := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		owner := ipam.Owner{Pod: ipam.PodRef{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}}
		pool.Allocations = append(pool.Allocations, ipam.Allocation{Key: ip.String(), IP: ip, Owner: owner, Token: "1"})
		showing := &pods[i/each]
		showing.Ref = ipam.PodRef{Namespace: "shop", Name: fmt.Sprintf("other-%d", i/each)}
		showing.Addresses = append(showing.Addresses, ip)
	}
	inv := ipam.TakeInventory(b.Context(), []ipam.Backend{fixedStore{pool}}, func(string) bool { return true })
	for name, pods := range map[string][]census.Pod{"none": nil, "all": pods} {
		b.Run(name, func(b *testing.B) {
			p, c := policy.Default(), censusOf(pods...)
			for b.Loop() {
				warnings := judge.ClaimWarnings(c, judge.Judge(noon, p, inv, c, ledger.Ledger{}))
				if (len(warnings) > 0) != (len(pods) > 0) {
					b.Fatal(warnings)
				}
			}
		})
	}
}
