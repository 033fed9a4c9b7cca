package reaper_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// BenchmarkOneSandbox judges the allocations of a crowd, all of which are of one sandbox
// and of one group, as a damaged store may have it.
func BenchmarkOneSandbox(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := newCrowd(n)
			for _, pools := range [][]reaper.Pool{c.entries, c.objects.fixedStore} {
				for _, pool := range pools {
					for i := range pool.Allocations {
						pool.Allocations[i].Owner.Sandbox, pool.Allocations[i].Group = "s", "g"
					}
				}
			}
			for i := range c.pods {
				c.pods[i].Sandbox = "s"
			}
			inv := reaper.TakeInventory(b.Context(), c.stores(), func(string) bool { return true })
			census := reaper.NewCensus(time.Now(), c.pods, nil, reaper.Node{Name: "node-1", Ready: true})
			p, now := policy.Default(), time.Now()
			b.ReportAllocs()
			for b.Loop() {
				reaper.Judge(now, p, inv, census, reaper.Ledger{})
			}
		})
	}
}
