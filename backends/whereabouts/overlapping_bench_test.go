package whereabouts

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// Each reservation is looked up among the IPPools of its namespace. The time grows with the
// reservations, and not with their product with the node slices.
func BenchmarkReservationsBesideNodeSlices(b *testing.B) {
	for _, count := range []int{100, 1_000, 4_000} {
		const each = 10
		var pools, reservations []json.RawMessage
		for n := range count {
			entries := make(map[string]map[string]string)
			for i := range each {
				podRef := fmt.Sprintf("default/pod-%d-%d", n, i)
				entries[fmt.Sprint(i+1)] = map[string]string{"id": "c", "podref": podRef, "ifname": "net1"}
				reservations = append(reservations, json.RawMessage(fmt.Sprintf(
					`{"metadata":{"namespace":"kube-system","name":"10.%d.%d.%d"},"spec":{"podref":%q,"ifname":"net1"}}`, n>>8, n&0xff, i+1, podRef)))
			}
			allocations, err := json.Marshal(entries)
			if err != nil {
				b.Fatal(err)
			}
			pools = append(pools, json.RawMessage(fmt.Sprintf(
				`{"metadata":{"namespace":"kube-system","name":"node-%d-10.%d.%d.0-24"},"spec":{"range":"10.%d.%d.0/24","allocations":%s}}`,
				n, n>>8, n&0xff, n>>8, n&0xff, allocations)))
		}
		b.Run(fmt.Sprint("slices=", count), func(b *testing.B) {
			for b.Loop() {
				for pool, err := range overlappingPools(readReservations(reservations), readPools(slices.Values(pools)), protections{excluded: new(exclusions)}) {
					if err != nil || pool.Allocations[0].Group == "" {
						b.Fatalf("%s: %v, and the group %q", pool.Name, err, pool.Allocations[0].Group)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count*each), "ns/reservation")
		})
	}
}
