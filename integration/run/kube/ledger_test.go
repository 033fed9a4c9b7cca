package kube_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// nodesOf returns a ledger that remembers the nodes of n pods, called from, from+1 and so
// on, and since when each tenth of them has been gone.
func (f *fixture) nodesOf(from, n int) reaper.Ledger {
	f.Helper()
	form := ledgertest.Ledger{Seen: make(map[string]int64), Nodes: make(map[string]string)}
	for i := from; i < from+n; i++ {
		key, node := ledgertest.Key(strconv.Itoa(i)), i%5000
		form.Nodes[key] = fmt.Sprintf("ip-10-%d-%d.eu-central-1.compute.internal", node>>8, node&255)
		if i%10 == 0 {
			form.Seen[key] = 1_800_000_000 + int64(i)
		}
	}
	l, err := reaper.DecodeLedger(form.Encode())
	f.must(err)
	return l
}

// ledgers returns the ledger of the test's namespace and what is stored of it. The proxy
// is between it and the API server.
func (f *fixture) ledgers() (*kube.Ledgers, reaper.Ledger, *proxy.Proxy) {
	f.Helper()
	client, p := f.watched()
	l := kube.NewLedgers(client.CoreV1(), f.namespace)
	have, err := l.Load(f.Context())
	f.must(err)
	return l, have, p
}

// wantLedger checks that the next run loads this ledger.
func (f *fixture) wantLedger(want reaper.Ledger) {
	f.Helper()
	if _, got, _ := f.ledgers(); !got.Equal(want) {
		f.Errorf("Load = %d entries, want the %d that were saved", got.Len(), want.Len())
	}
}

// versions returns the resource versions of the ConfigMaps, by name, and checks that none
// has more than 512 KiB.
func (f *fixture) versions() map[string]string {
	f.Helper()
	all, err := f.Kube.CoreV1().ConfigMaps(f.namespace).List(f.Context(), metav1.ListOptions{})
	f.must(err)
	versions := make(map[string]string)
	for _, cm := range all.Items {
		if !strings.HasPrefix(cm.Name, kube.LedgerName) {
			continue
		}
		versions[cm.Name] = cm.ResourceVersion
		if size := len(cm.BinaryData["ledger.gz"]); size > 512<<10 {
			f.Errorf("%s has %d bytes, want at most 512 KiB", cm.Name, size)
		}
	}
	return versions
}

// changed returns the names whose values differ.
func changed(before, after map[string]string) []string {
	var names []string
	for name, version := range after {
		if before[name] != version {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// wantGrown checks the writes by which an absent ledger became large: each ConfigMap is created,
// the first one to announce that, and is written last.
func (f *fixture) wantGrown(p *proxy.Proxy) {
	f.Helper()
	var writes []string
	for _, r := range p.Requests() {
		if r.Mutating() {
			writes = append(writes, r.Verb+r.Name)
		}
	}
	want := append(slices.Repeat([]string{"create"}, reaper.LedgerShards), "update"+kube.LedgerName)
	if !slices.Equal(writes, want) {
		f.Errorf("writes %v, want %v", writes, want)
	}
}

// The ledger of 150,000 pods with 330,000 allocations is stored and read again. A run that
// changes nothing writes nothing; a run that changes one entry writes one ConfigMap.
func TestLedgerOfTheLargestCluster(t *testing.T) {
	f := newFixture(t)
	want := f.nodesOf(0, 330_000)
	l, _, p := f.ledgers()
	f.must(l.Save(f.Context(), want))
	f.wantLedger(want)
	f.wantGrown(p)
	before := f.versions()
	if len(before) != reaper.LedgerShards {
		t.Errorf("%d ConfigMaps, want %d", len(before), reaper.LedgerShards)
	}
	again, have, _ := f.ledgers()
	f.must(again.Save(f.Context(), have))
	if names := changed(before, f.versions()); len(names) > 0 {
		t.Errorf("nothing changed, and %v were written", names)
	}
	want = want.Merge(f.nodesOf(330_001, 1))
	f.must(again.Save(f.Context(), want))
	if names := changed(before, f.versions()); len(names) != 1 {
		t.Errorf("one entry changed, and %v were written", names)
	}
	f.wantLedger(want)
}

// Promise 8. A run is refused, or loses its connection, at any of its writes: a reader
// finds each entry as one of the two ledgers has it. The next run stores the whole.
func TestLedgerWhoseSaveIsCutShort(t *testing.T) {
	small := func(f *fixture) reaper.Ledger { return f.nodesOf(0, 100) }
	big := func(f *fixture) reaper.Ledger { return f.nodesOf(50, 30_000) }
	for name, ends := range map[string][2]func(*fixture) reaper.Ledger{"it grows": {small, big}, "it empties": {big, small}} {
		for _, write := range []int{1, 2, 16, 32} {
			t.Run(fmt.Sprintf("%s, write %d", name, write), func(t *testing.T) {
				f := newFixture(t)
				before, after := ends[0](f), ends[1](f)
				l, _, _ := f.ledgers()
				f.must(l.Save(f.Context(), before))
				cut, _, p := f.ledgers()
				var writes atomic.Int64 // some come at the same time
				p.Before(proxy.Mutating, func(context.Context, proxy.Request) proxy.Action {
					if writes.Add(1) < int64(write) {
						return proxy.Pass()
					}
					return proxy.Forbidden()
				})
				if err := cut.Save(f.Context(), after); err == nil || errors.Is(err, reaper.ErrAgain) {
					t.Fatalf("Save = %v, want that it is forbidden", err)
				}
				_, got, _ := f.ledgers()
				was, is := before.Shards(reaper.LedgerShards), after.Shards(reaper.LedgerShards)
				for n, s := range got.Shards(reaper.LedgerShards) {
					if !s.Equal(was[n]) && !s.Equal(is[n]) {
						t.Errorf("shard %d is neither that of the ledger before nor that of the one after", n)
					}
				}
				if name == "it grows" && !got.Equal(before) {
					t.Error("the ledger is not that from before, although the first ConfigMap was not written")
				}
				next, _, _ := f.ledgers()
				f.must(next.Save(f.Context(), after))
				f.wantLedger(after)
			})
		}
	}
}

// Promise 8. The API server refuses the second of two writers, which then adds to what the
// first one stored.
func TestTwoRunsSaveTheLedger(t *testing.T) {
	for name, base := range map[string]int{"small": 10, "large": 40_000} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			l, _, _ := f.ledgers()
			f.must(l.Save(f.Context(), f.nodesOf(0, base)))
			first, one, _ := f.ledgers()
			second, two, _ := f.ledgers()
			mine, theirs := f.nodesOf(100_000, 100), f.nodesOf(200_000, 100)
			f.must(first.Save(f.Context(), one.Merge(mine)))
			if err := second.Save(f.Context(), two.Merge(theirs)); !errors.Is(err, reaper.ErrAgain) {
				t.Fatalf("Save = %v, want ErrAgain", err)
			}
			two, err := second.Load(f.Context())
			f.must(err)
			f.must(second.Save(f.Context(), two.Merge(theirs)))
			f.wantLedger(f.nodesOf(0, base).Merge(mine, theirs))
		})
	}
}

// Promise 1, 8. A run falls asleep while it makes the ledger large, and another one makes it
// large. The API server refuses the first one, which then adds to what the other one stored.
func TestRunFallsAsleepWhileItMakesTheLedgerLarge(t *testing.T) {
	for _, write := range []int64{1, 2, 3, 33} {
		t.Run(fmt.Sprintf("before write %d", write), func(t *testing.T) {
			f := newFixture(t)
			l, _, _ := f.ledgers()
			base, mine, theirs := f.nodesOf(0, 100), f.nodesOf(100_000, 40_000), f.nodesOf(200_000, 40_000)
			f.must(l.Save(f.Context(), base))
			asleep, _, p := f.ledgers()
			gate, saved := proxy.NewGate(), make(chan error, 1)
			p.Before(proxy.Nth(write, proxy.Mutating), gate.Hook)
			go func() { saved <- asleep.Save(f.Context(), base.Merge(mine)) }()
			<-gate.Arrived()
			// Requests of the first run that are under way may make the other one try again.
			err := reaper.ErrAgain
			for tries := 0; tries < 4 && errors.Is(err, reaper.ErrAgain); tries++ {
				other, _, _ := f.ledgers()
				err = other.Save(f.Context(), base.Merge(theirs))
			}
			f.must(err)
			gate.Open()
			if err := <-saved; !errors.Is(err, reaper.ErrAgain) {
				t.Fatalf("Save = %v, want ErrAgain", err)
			}
			f.wantLedger(base.Merge(theirs))
			var have reaper.Ledger
			have, err = asleep.Load(f.Context())
			f.must(err)
			f.must(asleep.Save(f.Context(), have.Merge(mine)))
			f.wantLedger(base.Merge(mine, theirs))
		})
	}
}
