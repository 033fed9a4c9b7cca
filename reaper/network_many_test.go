package reaper_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A tenant may write any number of attachments, and each may be a network without a pool. The
// report has 1,000 of these, each network that has a pool, and says what it left out.
func TestReportHasFewNetworksWithoutAPool(t *testing.T) {
	networks := make([]reaper.Network, 0, 1003)
	for i := range 1002 {
		networks = append(networks, reaper.Network{Name: fmt.Sprint("tenant-", i)})
	}
	networks = append(networks, reaper.Network{Name: "ours", Pools: []string{"pool"}})
	pool := poolOf(webAllocation())
	pool.Range = netip.MustParsePrefix("10.0.0.0/24")
	h := newHarness(surveyor{Backend: fixedStore{pool}, networks: networks})
	h.policy.DryRun = new(true)
	h.pods.Add(showing(web, ip1))
	report := h.run(t)
	equal(t, "networks", len(report.Networks), 1001)
	equal(t, "the last one", report.Networks[1000].Name, "ours")
	if !strings.Contains(fmt.Sprint(report.Warnings), "fixed: 2 networks that have no pool are not in the report") {
		t.Errorf("warnings %q", report.Warnings)
	}
}

// BenchmarkNetworks makes a dry run on as many networks as pools, each with one pool.
func BenchmarkNetworks(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var store fixedStore
			var networks []reaper.Network
			for i := range n {
				in := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
				store = append(store, reaper.Pool{Name: in.String(), Range: in})
				networks = append(networks, reaper.Network{
					Name: in.String(), Range: in, Known: true, Usable: reaper.Spans{reaper.SpanOf(in)}, Pools: []string{in.String()},
				})
			}
			h := newHarness(surveyor{Backend: store, networks: networks})
			h.policy.DryRun = new(true)
			for b.Loop() {
				if _, err := reaper.Run(b.Context(), h.options()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSelection selects the first of allocations that groups and addresses bind to each
// other in one chain.
func BenchmarkSelection(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var pool reaper.Pool
			for i := range n {
				a := webAllocation()
				a.Key, a.Owner.Pod.Name, a.Group = fmt.Sprint(i), fmt.Sprint("web-", (n-i)/2), fmt.Sprint("group-", (n-i+1)/2)
				a.Owner.Sandbox = fmt.Sprint("sandbox-", i)
				pool.Allocations = append(pool.Allocations, a)
			}
			pool.Name = "pool"
			h := newHarness(fixedStore{pool})
			h.policy.DryRun = new(true)
			h.pods.Add(reaper.Pod{Ref: other})
			h.change = func(o *reaper.Options) {
				o.Selection, o.IgnoreLimits = reaper.Selection{Pods: []string{"default/web-0"}}, true
			}
			for b.Loop() {
				report, err := reaper.Run(b.Context(), h.options())
				if err != nil || report.Summary.Entries != n {
					b.Fatalf("%d of %d allocations are selected: %v", report.Summary.Entries, n, err)
				}
			}
		})
	}
}
