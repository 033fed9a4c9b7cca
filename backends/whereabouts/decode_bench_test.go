package whereabouts

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// BenchmarkDecode decodes the allocations of a listing: half of them entries of one pool, the
// others overlapping reservations of the same addresses. Of the memory, retained is what
// they need as long as the run knows them.
func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pool, reservations := stored(n / 2)
			decode := func() []reaper.Pool {
				var all []reaper.Pool
				for p := range enginePools([]json.RawMessage{pool}, protections{excluded: new(exclusions)}) {
					all = append(all, p)
				}
				beside := readPools([]json.RawMessage{pool})
				for p := range overlappingPools(readAll(reservations), beside, protections{excluded: new(exclusions)}) {
					all = append(all, p)
				}
				return all
			}
			b.ReportAllocs()
			for b.Loop() {
				decode()
			}
			before := liveHeap()
			all := decode()
			after := liveHeap()
			runtime.KeepAlive(all)
			runtime.KeepAlive(reservations)
			b.ReportMetric(float64(int64(after)-int64(before))/float64(n), "retained-B/allocation")
		})
	}
}

// stored returns a pool with this many entries, and a reservation for each of them.
func stored(entries int) (pool json.RawMessage, reservations []json.RawMessage) {
	var all []string
	for i := range entries {
		owner := fmt.Sprintf(`"podref":"team-%d/web-7d4b9c6f5d-%06d","ifname":"net1"`, i%100, i)
		all = append(all, fmt.Sprintf(`"%d":{"id":"%064x",%s}`, i+1, i, owner))
		ip := fmt.Sprintf("10.%d.%d.%d", (i+1)>>16, (i+1)>>8&255, (i+1)&255)
		reservations = append(reservations, json.RawMessage(fmt.Sprintf(
			`{"metadata":{"namespace":"kube-system","name":%q,"uid":"%036d","resourceVersion":"%d","creationTimestamp":"2026-03-01T12:00:00Z"},`+
				`"spec":{"containerid":"%064x",%s}}`, ip, i, i, i, owner)))
	}
	return json.RawMessage(`{"metadata":{"namespace":"kube-system","name":"10.0.0.0-8"},"spec":{"range":"10.0.0.0/8","allocations":{` +
		strings.Join(all, ",") + `}}}`), reservations
}

// liveHeap returns the size of the objects that are reachable, in bytes.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// readAll decodes overlapping reservations.
func readAll(items []json.RawMessage) []reservation {
	var all []reservation
	for _, item := range items {
		all = append(all, readReservation(item))
	}
	return all
}
