package ledger_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
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

// Promise 1. If a ledger has no room for all entries, it leaves out the nodes first. It never leaves
// out where pods hang and what was restored: without these, an address may be released too early.
func TestFullLedgerLeavesOutWhatMattersLeast(t *testing.T) {
	key := ledgertest.Key
	all := ledgertest.Ledger{
		Restored: map[string]int64{key("restored"): noon.Unix()},
		Seen:     map[string]int64{key("old"): 1000, key("new"): 2000},
		Graces:   map[string]int64{key("grace"): 60},
		Nodes:    map[string]string{key("hung"): "n1/boot", key("mirror"): "n1//boot", key("live"): "n1"},
		Figures:  ledgertest.Figures{Pods: 7},
		Runs:     []ledgertest.Run{{ID: "run-1", Began: noon.Unix(), Flags: 2}},
	}
	whole := ledgerOfForm(t, all)
	for n, drop := range []func(){ // in their order
		func() {},
		func() { delete(all.Nodes, key("live")) },
		func() { delete(all.Graces, key("grace")) },
		func() { delete(all.Seen, key("new")) },
		func() { delete(all.Seen, key("old")) },
	} {
		drop()
		fitting, left, err := whole.Fit(len(all.Encode()))
		equal(t, fmt.Sprintf("without %d", n), formOf(t, fitting), formOf(t, ledgerOfForm(t, all)))
		equal(t, "left out", left, n)
		equal(t, "error", err, nil)
	}
	if _, _, err := whole.Fit(len(all.Encode()) - 1); !errors.Is(err, ledger.ErrFull) {
		t.Errorf("Fit = %v, want ErrFull", err)
	}
}
