package report_test

import (
	"fmt"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// BenchmarkMake makes the report of 150,000 allocations in use and 1,500 that leaked, in blocks of
// 64: without entries for what is in use, and with them.
func BenchmarkMake(b *testing.B) {
	const count, size, leaked, blocks = 151_500, 64, 101, 2368
	cluster := netip.MustParsePrefix("10.0.0.0/8")
	network := report.NetworkReport{Backend: "calico", Name: "default", Range: cluster.String(), Usable: ipam.NewSpans(ipam.SpanOf(cluster))}
	network.Capacity = network.Usable.Count()
	f := report.Results{
		Inventory: ipam.Inventory{Listings: []ipam.Listing{{Backend: "calico", Status: ipam.StatusOK}}},
		HasTimes:  func(*judge.Decision) bool { return true },
		Brief:     true,
	}
	for i := range count {
		n := i/size*7919%blocks*size + i%size // the blocks are not in the order of their addresses
		ip := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
		if i%size == 0 {
			name := fmt.Sprintf("block-%d", i/size)
			pool := report.PoolReport{Backend: "calico", Name: name, Range: netip.PrefixFrom(ip, 26).String(), AllocatedBefore: size}
			pool.Capacity = big.NewInt(size)
			f.Layout.Pools = append(f.Layout.Pools, pool)
			network.Pools = append(network.Pools, name)
		}
		a := &ipam.Allocation{Backend: "calico", Pool: network.Pools[i/size], Key: fmt.Sprint(i % size), IP: ip, Owner: ipam.Owner{Pod: ipam.PodRef{Namespace: "shop", Name: fmt.Sprint("web-", i)}}}
		ruling := judge.Ruling{Verdict: judge.InUse, Reason: judge.PodPresent, Evidence: []judge.Evidence{{Source: "list of pods", Says: "it exists"}}}
		if i%leaked == 0 {
			ruling = judge.Ruling{Verdict: judge.Suspected, Reason: judge.PodAbsent, Ownerless: true}
		}
		f.Verdicts.Decisions = append(f.Verdicts.Decisions, judge.Decision{Allocation: a, Ruling: ruling})
	}
	f.Layout.Networks = append(f.Layout.Networks, network)
	for name, brief := range map[string]bool{"brief": true, "whole": false} {
		f.Brief = brief
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := report.Make(f); r.Leaked.Waiting != 1500 || r.Networks[0].Used != count {
					b.Fatal(r.Leaked, r.Networks[0].Usage)
				}
			}
		})
	}
}

// BenchmarkFindings compares what 150,000 pods show with what Calico has for them.
func BenchmarkFindings(b *testing.B) {
	const size = 150_000
	pool := ipam.Pool{Name: "block", Allocations: make([]ipam.Allocation, size)}
	pods := make([]census.Pod, size)
	for i := range size {
		ip := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		if i >= 1<<16 {
			ip = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		}
		pods[i] = onCalico(fmt.Sprint("pod-", i), ip.String())
		pool.Allocations[i] = ipam.Allocation{Backend: "calico", Pool: "block", IP: ip, Owner: ipam.Owner{Pod: pods[i].Ref}}
	}
	all := netip.MustParsePrefix("10.0.0.0/8")
	listing := ipam.Listing{Backend: "calico", Whole: true, Pools: []ipam.Pool{pool}}
	y := report.NewLayout(ipam.Inventory{Listings: []ipam.Listing{listing}})
	y.AddNetworks(listing, []ipam.Network{{Name: "p", Range: all, Known: true, Usable: ipam.NewSpans(ipam.SpanOf(all)), Default: true, Pools: []string{"block"}}})
	c, inv := census.New(time.Unix(1, 0), pods, nil), ipam.Inventory{Listings: []ipam.Listing{listing}}
	b.ReportAllocs()
	for b.Loop() {
		if found := y.Findings(inv, c); len(found) > 0 {
			b.Fatal(found[0])
		}
	}
}
