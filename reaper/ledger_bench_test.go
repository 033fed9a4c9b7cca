package reaper_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// benchLedger returns a ledger of n allocations: the nodes of all of them, and since when
// each tenth has been ownerless.
func benchLedger(n, nodes int) (reaper.Ledger, []reaper.Allocation) {
	allocations := make([]reaper.Allocation, n)
	b := reaper.NewLedgerBuilder(reaper.Ledger{}.Salted())
	for i := range allocations {
		a := &allocations[i]
		*a = reaper.Allocation{
			Backend: "whereabouts", Pool: "kube-system/10.0.0.0-9", Key: fmt.Sprint(i),
			Token: fmt.Sprintf(`{"id":"%064x","podref":"shop/web-%d","ifname":"net1"}`, i, i),
		}
		b.Place(a, reaper.Place{Node: fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i%nodes/250, i%250)})
		if i%10 == 0 {
			b.Seen(a, false, time.Unix(1_790_000_000+int64(i), 0))
		}
	}
	return b.Ledger(), allocations
}

// One ConfigMap has room for the nodes of 100,000 pods, on 1,000 nodes, and for the times of
// each tenth.
func TestLedgerOf110000EntriesFitsInOneConfigMap(t *testing.T) {
	l, _ := benchLedger(100_000, 1_000)
	if size := len(l.Encode()); l.Len() != 110_000 || size > 1020<<10 {
		t.Errorf("%d entries have %d bytes, want at most 1020 KiB", l.Len(), size)
	}
}

// heap returns the bytes that are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkLedger(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 330_000} {
		l, allocations := benchLedger(n, 5_000)
		stored := l.Encode()
		decode := func() reaper.Ledger {
			l, err := reaper.DecodeLedger(stored)
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
			"lookup": func() { i += 7919; l.Last(&allocations[i%n]) },
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
