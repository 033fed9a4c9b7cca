package ledger_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// One ConfigMap has room for where 110,000 pods are, on 1,000 nodes, if each has an entry of
// Whereabouts and an overlapping-range reservation.
func TestLedgerOf110000PodsFitsInOneConfigMap(t *testing.T) {
	const pods = 110_000
	b := ledger.NewBuilder(ledger.Ledger{}.Salted())
	for i := range pods {
		entry := ipam.Allocation{
			Backend: "whereabouts", Pool: "kube-system/10.0.0.0-8", Key: fmt.Sprint(i), Token: fmt.Sprint("entry ", i),
			IP: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), Owner: ipam.Owner{Sandbox: fmt.Sprint("sandbox ", i)},
		}
		reservation := entry
		reservation.Backend, reservation.Pool, reservation.Token = "overlapping", "kube-system/"+entry.IP.String(), "1"
		place := ledger.Place{Node: fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i%1000/250, i%250)}
		b.Place(&entry, place)
		b.Place(&reservation, place)
	}
	l := b.Ledger()
	if size := len(l.Encode()); l.Len() != pods || size > 1020<<10 {
		t.Errorf("%d entries have %d bytes, want %d in at most 1020 KiB", l.Len(), size, pods)
	}
}
