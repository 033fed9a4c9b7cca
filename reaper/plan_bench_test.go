package reaper_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// benchSizes are the numbers of allocations of the benchmarks that grow.
var benchSizes = []int{1_000, 10_000, 100_000}

// A crowd has pods of one cluster, and their allocations in two stores: an entry of a pool
// of 1,000, and an object of its own. One pod of eleven is gone.
type crowd struct {
	pods    []reaper.Pod
	entries fixedStore
	objects objectStore
}

// An objectStore is a fixedStore of another name.
type objectStore struct{ fixedStore }

func (objectStore) Name() string { return "objects" }

// newCrowd returns a crowd with this many allocations.
func newCrowd(allocations int) crowd {
	var c crowd
	for i := range allocations / 2 {
		if i%1000 == 0 {
			c.entries = append(c.entries, reaper.Pool{Name: fmt.Sprintf("kube-system/pool-%d", i/1000), Network: "-"})
		}
		ip := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		ref := reaper.PodRef{Namespace: fmt.Sprintf("team-%d", i%100), Name: fmt.Sprintf("web-7d4b9c6f5d-%06d", i)}
		owner := reaper.Owner{Pod: ref, Sandbox: fmt.Sprintf("%064x", i), Interface: "net1"}
		pool := &c.entries[len(c.entries)-1]
		group := fmt.Sprintf("%s %d %s", pool.Name, i, ref)
		pool.Allocations = append(pool.Allocations, reaper.Allocation{
			Key: fmt.Sprint(i), IP: ip, Owner: owner, Group: group, Token: fmt.Sprintf("%s %s", owner.Sandbox, ref),
		})
		c.objects.fixedStore = append(c.objects.fixedStore, reaper.Pool{
			Name: "kube-system/" + ip.String(), Network: "-",
			Allocations: []reaper.Allocation{{
				Key: ip.String(), IP: ip, Owner: owner, Group: group, Token: fmt.Sprintf("%d/%s/%s", i, owner.Sandbox, ref), Created: noon,
			}},
		})
		if i%11 != 0 {
			pod := showing(ref, ip)
			pod.Node = fmt.Sprintf("node-%d", i%1000)
			c.pods = append(c.pods, pod)
		}
	}
	return c
}

// stores returns the backends that list the crowd.
func (c crowd) stores() []reaper.Backend { return []reaper.Backend{c.entries, c.objects} }

// BenchmarkJudge judges the allocations of a crowd. Of the memory, retained is what the
// decisions need as long as they are kept, beyond the inventory and the census.
func BenchmarkJudge(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := newCrowd(n)
			inv := reaper.TakeInventory(b.Context(), c.stores(), func(string) bool { return true })
			census := reaper.NewCensus(time.Now(), c.pods, nil, reaper.Node{Name: "node-1", Ready: true})
			p, now := policy.Default(), time.Now()
			b.ReportAllocs()
			for b.Loop() {
				reaper.Judge(now, p, inv, census, reaper.Ledger{})
			}
			reportRetained(b, n, func() any { return reaper.Judge(now, p, inv, census, reaper.Ledger{}) })
			runtime.KeepAlive(c)
		})
	}
}

// BenchmarkRun makes a dry run on a crowd. Of the memory, retained is what the report needs.
func BenchmarkRun(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := newCrowd(n)
			h := newHarness(c.stores()...)
			h.policy.DryRun = new(true)
			h.pods.Add(c.pods...)
			h.change = func(o *reaper.Options) { o.IgnoreLimits = true }
			plan := func() any {
				report, err := reaper.Run(b.Context(), h.options())
				if err != nil {
					b.Fatal(err)
				}
				return report
			}
			b.ReportAllocs()
			for b.Loop() {
				plan()
			}
			reportRetained(b, n, plan)
			runtime.KeepAlive(c)
		})
	}
}

// reportRetained reports how many bytes for each allocation the result keeps alive.
func reportRetained(b *testing.B, allocations int, result func() any) {
	b.Helper()
	before := liveHeap()
	kept := result()
	after := liveHeap()
	runtime.KeepAlive(kept)
	b.ReportMetric(float64(int64(after)-int64(before))/float64(allocations), "retained-B/allocation")
}

// liveHeap returns the size of the objects that are reachable, in bytes.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
