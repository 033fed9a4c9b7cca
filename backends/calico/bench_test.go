package calico

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A fullStore is a datastore that lists the handles and full blocks of so many sandboxes,
// one address each.
type fullStore struct {
	datastore
	form      shape
	addresses int
	stored    map[kind][]object
}

// newFullStore makes the objects.
func newFullStore(s shape, addresses int) *fullStore {
	f := &fullStore{form: s, addresses: addresses}
	f.fill()
	return f
}

// fill makes the objects again, so that a backend that kept a part of the former ones
// keeps it alone.
func (f *fullStore) fill() {
	f.stored = make(map[kind][]object)
	const size = 64
	for first := 0; first < f.addresses; first += size {
		cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(first >> 16), byte(first >> 8), byte(first)}), 26)
		var allocations, attributes, sequences []string
		for n := first; n < first+size; n++ {
			id := "k8s-pod-network." + sandbox(n)
			allocations = append(allocations, fmt.Sprint(n-first))
			attributes = append(attributes, fmt.Sprintf(`{"handle_id":%q,"secondary":{"namespace":"team-%d","node":"node-%d","pod":"web-%d-6d5f9c7b8d-x2x7q","timestamp":"2026-11-22 18:00:00.123456789 +0000 UTC"}}`,
				id, n%50, first/256, n))
			sequences = append(sequences, fmt.Sprintf(`"%d":%d`, n-first, 1_800_000_000_000_000_000+n))
			f.stored[handles] = append(f.stored[handles], f.form.stored(handles, id, fmt.Sprintf(`{"handleID":%q,"block":{%q:1},"deleted":false}`, id, cidr)))
		}
		f.stored[blocks] = append(f.stored[blocks], f.form.stored(blocks, cidr.String(), fmt.Sprintf(
			`{"affinity":"host:node-%d","allocations":[%s],"attributes":[%s],"cidr":%q,"deleted":false,"sequenceNumber":%d,"sequenceNumberForAllocation":{%s},"strictAffinity":false,"unallocated":[]}`,
			first/256, strings.Join(allocations, ","), strings.Join(attributes, ","), cidr, 1_900_000_000_000_000_000, strings.Join(sequences, ","))))
	}
}

func (*fullStore) ready(context.Context) error                             { return nil }
func (*fullStore) nodes(context.Context) (map[string]string, error)        { return nil, nil } //nolint:nilnil // it has none
func (*fullStore) ipReservations(context.Context) ([]ipReservation, error) { return nil, nil }

func (f *fullStore) list(_ context.Context, k kind, reduce func(object) any) ([]any, error) {
	var all []any
	for _, o := range f.stored[k] {
		if f.form.name == "kubernetes" {
			var err error
			if o, err = readObject(k, json.RawMessage(o.raw)); err != nil {
				return nil, err
			}
		}
		all = append(all, reduce(o))
	}
	return all, nil
}

// BenchmarkList decodes blocks and handles. kept-B/address is what pools and backend keep
// of an address after the listing.
func BenchmarkList(b *testing.B) {
	for _, s := range shapes {
		for _, n := range []int{1_000, 10_000, 100_000, 300_000} {
			b.Run(fmt.Sprintf("%s/addresses=%d", s.name, n), func(b *testing.B) {
				f := newFullStore(s, n)
				var backend *Backend
				var pools []reaper.Pool
				list := func() {
					backend = newBackend(func(context.Context) (datastore, error) { return f, nil })
					pools = nil
					for pool, err := range backend.List(b.Context()) {
						if err != nil {
							b.Fatal(err)
						}
						pools = append(pools, pool)
					}
				}
				b.ReportAllocs()
				for b.Loop() {
					list()
				}
				f.fill()
				list()
				f.stored = nil
				full := heap()
				runtime.KeepAlive(backend)
				backend = nil
				withoutBackend := heap()
				runtime.KeepAlive(pools)
				pools = nil
				b.ReportMetric(float64(full-withoutBackend)/float64(n), "backend-B/address")
				b.ReportMetric(float64(withoutBackend-heap())/float64(n), "pools-B/address")
			})
		}
	}
}

// heap returns the bytes of the heap in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
