package reaper_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

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
