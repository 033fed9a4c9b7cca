package reaper_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// BenchmarkClaims warns of 10,000 pods of one tenant, each of which claims the same 100
// addresses of others.
func BenchmarkClaims(b *testing.B) {
	var pool reaper.Pool
	var ips []netip.Addr
	for i := range 100 {
		ips = append(ips, ip(byte(i)))
		pool.Allocations = append(pool.Allocations, reaper.Allocation{
			Key: fmt.Sprint(i), IP: ips[i], Owner: reaper.Owner{Pod: other}, Token: "t",
		})
	}
	benchmarkDryRun(b, fixedStore{pool}, pods(10_000, func(pod *reaper.Pod) { *pod = showing(pod.Ref, ips...) }))
}

// BenchmarkClaimants makes dry runs with many pods that claim addresses, or hide them.
func BenchmarkClaimants(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		showingIt := pods(n, func(pod *reaper.Pod) { *pod = showing(pod.Ref, ip1) })
		hiding := pods(n, func(pod *reaper.Pod) {
			*pod = inStatus(1, showing(pod.Ref, ip(9)))
			pod.AddressUnknown = true
		})
		var unnamed reaper.Pool
		var networks []reaper.Pool
		for i, pod := range showingIt {
			a := reaper.Allocation{Key: fmt.Sprint(i), IP: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), Token: "t"}
			a.Owner.Sandbox = fmt.Sprint("s", i)
			unnamed.Allocations = append(unnamed.Allocations, a)
			a.IP, a.Owner = ip1, reaper.Owner{Pod: pod.Ref}
			networks = append(networks, reaper.Pool{Name: fmt.Sprint(i), Network: fmt.Sprint(i), Allocations: []reaper.Allocation{a}})
		}
		for _, bb := range []struct {
			name  string
			store fixedStore
			pods  []reaper.Pod
		}{
			{"of one address", fixedStore{poolOf(webAllocation())}, showingIt},
			{"of one address of many networks", networks, showingIt},
			{"that hide addresses", fixedStore{unnamed}, hiding},
		} {
			b.Run(fmt.Sprintf("%s/%d", bb.name, n), func(b *testing.B) { benchmarkDryRun(b, bb.store, bb.pods) })
		}
	}
}

// pods returns this many pods of one tenant, which a function changes.
func pods(n int, change func(*reaper.Pod)) []reaper.Pod {
	all := make([]reaper.Pod, n)
	for i := range all {
		all[i].Ref = reaper.PodRef{Namespace: "tenant", Name: fmt.Sprint("pod-", i)}
		change(&all[i])
	}
	return all
}

// benchmarkDryRun makes dry runs on a store and a list of pods.
func benchmarkDryRun(b *testing.B, store fixedStore, pods []reaper.Pod) {
	b.Helper()
	h := newHarness(store)
	h.policy.DryRun, h.policy.Pods.Unnamed = new(true), policy.Release
	h.pods.Add(pods...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reaper.Run(b.Context(), h.options()); err != nil {
			b.Fatal(err)
		}
	}
}
