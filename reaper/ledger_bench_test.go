package reaper

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// benchLedger returns a ledger of n allocations: the nodes of all of them, and since when
// each tenth has been ownerless.
func benchLedger(n, nodes int) (Ledger, []Decision) {
	decisions := make([]Decision, n)
	for i := range decisions {
		d := &decisions[i]
		d.Allocation = &Allocation{
			Backend: "whereabouts", Pool: "kube-system/10.0.0.0-9", Key: fmt.Sprint(i),
			Token: fmt.Sprintf(`{"id":"%064x","podref":"shop/web-%d","ifname":"net1"}`, i, i),
		}
		d.facts, d.Ruling, d.known = &Facts{}, &Ruling{}, &knowledge{}
		d.known.last.node = fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i%nodes/250, i%250)
		if i%10 == 0 {
			d.remember, d.FirstSeen = true, time.Unix(1_790_000_000+int64(i), 0).UTC()
		}
	}
	return Ledger{}.salted().next(decisions, Census{}, benchInventory), decisions
}

// One ConfigMap has room for the nodes of 100,000 pods, on 1,000 nodes, and for the times of
// each tenth.
func TestLedgerOf110000EntriesFitsInOneConfigMap(t *testing.T) {
	l, _ := benchLedger(100_000, 1_000)
	if size := len(l.Encode()); l.Len() != 110_000 || size > 1020<<10 {
		t.Errorf("%d entries have %d bytes, want at most 1020 KiB", l.Len(), size)
	}
}

var benchInventory = Inventory{Listings: []Listing{{Backend: "whereabouts", whole: true}}}

// heap returns the bytes that are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkLedger(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 330_000} {
		l, decisions := benchLedger(n, 5_000)
		stored := l.Encode()
		decode := func() Ledger {
			l, err := DecodeLedger(stored)
			if err != nil {
				b.Fatal(err)
			}
			return l
		}
		i := 0
		for name, f := range map[string]func(){
			"encode": func() { l.Encode() },
			"decode": func() { decode() },
			"merge":  func() { l.Merge(l) },
			"equal":  func() { l.Equal(l) },
			"next":   func() { l.next(decisions, Census{}, benchInventory) },
			"lookup": func() { i += 7919; l.last(decisions[i%n].Allocation) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		b.Run(fmt.Sprintf("retained/%d", n), func(b *testing.B) {
			before := heap()
			d := decode()
			retained := float64(heap() - before)
			for b.Loop() {
				runtime.KeepAlive(d)
			}
			b.ReportMetric(retained/float64(d.Len()), "retained-B/entry")
		})
	}
}
