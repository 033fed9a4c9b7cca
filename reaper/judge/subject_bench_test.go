package judge_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// BenchmarkRulesByPool judges 21,000 leaked allocations in 800 ranges, half of them overlapping-range
// reservations, each a pool of its own: by no rule, and by one for each range.
func BenchmarkRulesByPool(b *testing.B) {
	const ranges, leaked = 800, 21000
	var pools fixedStore
	rules := make([]policy.Rule, ranges)
	for n := range ranges {
		base := netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 0})
		pool := ipam.Pool{Name: fmt.Sprintf("kube-system/%s-24", base), Range: netip.PrefixFrom(base, 24)}
		rules[n] = policy.Rule{Match: policy.Match{Pools: []string{pool.Range.String()}}, Hold: true}
		for i := n; i < leaked/2; i += ranges {
			at := base.As4()
			at[3] = byte(1 + i/ranges)
			ip := netip.AddrFrom4(at)
			owner := ipam.Owner{Pod: ipam.PodRef{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}}
			a := ipam.Allocation{Key: ip.String(), IP: ip, Owner: owner, Token: "1"}
			pool.Allocations = append(pool.Allocations, a)
			pools = append(pools, ipam.Pool{Name: "kube-system/" + ip.String(), Allocations: []ipam.Allocation{a}})
		}
		pools = append(pools, pool)
	}
	inv := ipam.TakeInventory(b.Context(), []ipam.Backend{pools}, func(string) bool { return true })
	for want, rules := range map[judge.Verdict][]policy.Rule{judge.Suspected: {}, judge.Held: rules} {
		b.Run(fmt.Sprintf("%d rules", len(rules)), func(b *testing.B) {
			p := policy.Default()
			p.Rules = rules
			for b.Loop() {
				ruled := 0
				for _, d := range judge.Judge(noon, p, inv, censusOf(), ledger.Ledger{}) {
					if d.Verdict == want {
						ruled++
					}
				}
				if ruled != leaked {
					b.Fatalf("%d of %d leaked by their rules", ruled, leaked)
				}
			}
		})
	}
}
