package run_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// nodesOf returns a ledger that remembers the nodes of n pods, named from, from+1 and so on, and
// since when every tenth has been gone.
func (f *fixture) nodesOf(from, n int) ledger.Ledger {
	f.Helper()
	form := ledgertest.Ledger{Seen: make(map[string]int64), Nodes: make(map[string]string)}
	for i := from; i < from+n; i++ {
		key, node := ledgertest.Key(strconv.Itoa(i)), i%5000
		form.Nodes[key] = fmt.Sprintf("ip-10-%d-%d.eu-central-1.compute.internal", node>>8, node&255)
		if i%10 == 0 {
			form.Seen[key] = 1_800_000_000 + int64(i)
		}
	}
	l, err := ledger.Decode(form.Encode())
	f.must(err)
	return l
}

// ledgers returns the ledger store of the namespace home, the stored ledger, and the proxy
// between them and the API server.
func (f *fixture) ledgers() (*state.Ledgers, ledger.Ledger, *proxy.Proxy) {
	f.Helper()
	client, p := f.watched()
	l := state.NewLedgers(client.CoreV1(), home)
	have, err := l.Load(f.Context())
	f.must(err)
	return l, have, p
}

// wantLedger checks that the next run loads this ledger.
func (f *fixture) wantLedger(want ledger.Ledger) {
	f.Helper()
	if _, got, _ := f.ledgers(); !got.Equal(want) {
		f.Errorf("Load = %d entries, want the %d that were saved", got.Len(), want.Len())
	}
}

// The API server stores a ledger that fills its ConfigMap.
func TestFullLedgerIsStored(t *testing.T) {
	f := newFixture(t)
	l, _, _ := f.ledgers()
	want := f.nodesOf(0, 75_000)
	if size := len(want.Encode()); size < l.Capacity()*3/4 {
		t.Fatalf("the ledger has %d bytes, of %d", size, l.Capacity())
	}
	f.must(l.Save(f.Context(), want))
	f.wantLedger(want)
}

// Promise 8. The API server refuses the second of two writers, which then adds to what the first
// stored.
func TestTwoRunsSaveTheLedger(t *testing.T) {
	f := newFixture(t)
	l, _, _ := f.ledgers()
	f.must(l.Save(f.Context(), f.nodesOf(0, 10)))
	first, one, _ := f.ledgers()
	second, two, _ := f.ledgers()
	mine, theirs := f.nodesOf(200_000, 100), f.nodesOf(300_000, 100)
	f.must(first.Save(f.Context(), one.Merge(mine)))
	if err := second.Save(f.Context(), two.Merge(theirs)); !errors.Is(err, ipam.ErrAgain) {
		t.Fatalf("Save = %v, want ErrAgain", err)
	}
	two, err := second.Load(f.Context())
	f.must(err)
	f.must(second.Save(f.Context(), two.Merge(theirs)))
	f.wantLedger(f.nodesOf(0, 10).Merge(mine).Merge(theirs))
}
