package reaper_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// BenchmarkJudge judges 30,000 allocations in pools of 1,000 against as many
// pods, half of which are gone.
func BenchmarkJudge(b *testing.B) {
	const n = 30_000
	store := make(fixedStore, 0, n/1000)
	pods := make([]reaper.Pod, 0, n/2)
	for i := range n {
		if i%1000 == 0 {
			store = append(store, reaper.Pool{Name: fmt.Sprintf("pool-%d", i/1000), Network: "-"})
		}
		ip := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		ref := reaper.PodRef{Namespace: "default", Name: fmt.Sprintf("pod-%d", i)}
		pool := &store[len(store)-1]
		pool.Allocations = append(pool.Allocations, reaper.Allocation{
			Key: fmt.Sprint(i), IP: ip, Owner: reaper.Owner{Pod: ref, Interface: "net1"}, Token: ref.Name,
		})
		if i%2 == 0 {
			pods = append(pods, reaper.Pod{Ref: ref, Addresses: []netip.Addr{ip}})
		}
	}
	inv := reaper.TakeInventory(b.Context(), []reaper.Backend{store}, func(string) bool { return true })
	census := reaper.NewCensus(time.Now(), pods, nil)
	p, now := policy.Default(), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if got := len(reaper.Judge(now, p, inv, census, reaper.Ledger{})); got != n {
			b.Fatalf("%d verdicts, want %d", got, n)
		}
	}
}

// A fixedStore lists its pools and releases nothing.
type fixedStore []reaper.Pool

func (fixedStore) Name() string { return "fixed" }

func (s fixedStore) List(context.Context) iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) {
		for _, pool := range s {
			if !yield(pool, nil) {
				return
			}
		}
	}
}

func (fixedStore) Record(ctx context.Context, as []reaper.Allocation) ([]json.RawMessage, error) {
	return tokenRecorder{}.Record(ctx, as)
}

func (fixedStore) Compare(ctx context.Context, pool string, rs []reaper.Record) []error {
	return tokenRecorder{}.Compare(ctx, pool, rs)
}

func (fixedStore) Restore(ctx context.Context, pool string, rs []reaper.Record) []error {
	return tokenRecorder{}.Restore(ctx, pool, rs)
}

func (fixedStore) Release(_ context.Context, _ string, ws []reaper.Warrant) []error {
	return make([]error, len(ws))
}

// BenchmarkClaims warns of 10,000 pods of one tenant, each of which claims the same 100
// addresses of others.
func BenchmarkClaims(b *testing.B) {
	const n = 10_000
	var pool reaper.Pool
	var ips []netip.Addr
	for i := range 100 {
		ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		ips = append(ips, ip)
		pool.Allocations = append(pool.Allocations, reaper.Allocation{
			Key: fmt.Sprint(i), IP: ip, Owner: reaper.Owner{Pod: other}, Token: "t",
		})
	}
	h := newHarness(fixedStore{pool})
	h.policy.DryRun = new(true)
	for i := range n {
		h.pods.Add(showing(reaper.PodRef{Namespace: "tenant", Name: fmt.Sprintf("pod-%d", i)}, ips...))
	}
	for b.Loop() {
		report, err := reaper.Run(b.Context(), h.options())
		if err != nil || len(report.Warnings) == 0 {
			b.Fatalf("warnings %q, error %v", report.Warnings, err)
		}
	}
}
