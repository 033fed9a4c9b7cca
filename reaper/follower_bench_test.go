package reaper_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// BenchmarkFollowedLook applies 100 changes to an index of 150,000 pods, and judges a batch
// of 100 allocations that name no pod by it. A list in its place would index all pods.
func BenchmarkFollowedLook(b *testing.B) {
	const all, some = 150_000, 100
	pods := make([]reaper.Pod, all)
	for i := range pods {
		pods[i] = reaper.Pod{
			Ref:       reaper.PodRef{Namespace: "default", Name: fmt.Sprintf("pod-%d", i)},
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})},
			InStatus:  1,
		}
	}
	as := allocations(some)
	for i := range as {
		as[i].IP = netip.AddrFrom4([4]byte{11, 0, 0, byte(i)})
		as[i].Owner = reaper.Owner{Sandbox: fmt.Sprint("gone-", i)}
	}
	inv := reaper.TakeInventory(b.Context(), []reaper.Backend{fixedStore{poolOf(as...)}}, func(string) bool { return true })
	changes := make([]reaper.PodChange, some)
	for i := range changes {
		changes[i] = reaper.PodChange{Ref: pods[i*7].Ref, Pod: &pods[i*7]}
	}
	census := censusOf(pods...).After()
	b.Run("changes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			census.Apply(changes...)
			if got := len(reaper.MakePlan(reaper.Judge(noon, impatientWithUnnamed(), inv, census, reaper.Ledger{})).Orphans()); got != some {
				b.Fatalf("%d orphans", got)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			censusOf(pods...)
		}
	})
}
