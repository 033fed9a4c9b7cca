package reaper_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// ledgerOf decodes a ledger with these seconds, by hash.
func ledgerOf(t testing.TB, seen map[string]int64) reaper.Ledger {
	t.Helper()
	data, err := json.Marshal(map[string]any{"version": 1, "seen": seen})
	if err != nil {
		t.Fatal(err)
	}
	l, err := reaper.DecodeLedger(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return l
}

// contents returns the ledger's seconds, by hash.
func contents(t testing.TB, l reaper.Ledger) map[string]int64 {
	t.Helper()
	var file struct{ Seen map[string]int64 }
	if err := json.Unmarshal(l.Encode(), &file); err != nil {
		t.Fatal(err)
	}
	return file.Seen
}

// onlyID returns the hash of the ledger's only allocation.
func onlyID(t *testing.T, l reaper.Ledger) string {
	t.Helper()
	equal(t, "entries", l.Len(), 1)
	for id := range contents(t, l) {
		return id
	}
	return ""
}

func TestLedgerForm(t *testing.T) {
	equal(t, "empty", string(reaper.Ledger{}.Encode()), `{"version":1,"seen":{}}`)
	l := ledgerOf(t, map[string]int64{"b": 2, "a": 1})
	equal(t, "two entries", string(l.Encode()), `{"version":1,"seen":{"a":1,"b":2}}`)
}

func TestLedgerHasAHashOfTheIdentity(t *testing.T) {
	a := webAllocation()
	a.Token = string(make([]byte, 100_000))
	s := situation{pools: []reaper.Pool{poolOf(a)}}
	if id := onlyID(t, s.seen(t, noon)); len(id) != 22 {
		t.Errorf("the identity is %q, want 128 bits in base64", id)
	}
}

func TestDamagedLedgerIsRefused(t *testing.T) {
	for _, text := range []string{
		``, `null`, `{}`, `[]`, `"`, `{"version":1`, `{"version":2,"seen":{}}`, `{"version":-1,"seen":{}}`,
		`{"version":"1","seen":{}}`, `{"version":1,"seen":[]}`, `{"version":1,"seen":{"a":"yesterday"}}`,
		`{"version":1,"seen":{"a":1.5}}`, `{"version":1,"seen":{"a":1e30}}`, `{"version":1,"seen":{"a":-1}}`,
		`{"version":1,"seen":{"a":253402300800}}`, `{"version":1,"seen":{}} and more`,
	} {
		l, err := reaper.DecodeLedger([]byte(text))
		if !errors.Is(err, reaper.ErrLedgerDamaged) {
			t.Errorf("%s: %v, want ErrLedgerDamaged", text, err)
		}
		equal(t, "entries of "+text, l.Len(), 0)
	}
}

func TestEmptyLedgersAreEqual(t *testing.T) {
	decoded := ledgerOf(t, nil)
	if !decoded.Equal(reaper.Ledger{}) || !(reaper.Ledger{}).Equal(decoded) {
		t.Error("an empty ledger differs from the zero one")
	}
}

func TestLedgersOfOneSizeDiffer(t *testing.T) {
	a, b := ledgerOf(t, map[string]int64{"a": 1}), ledgerOf(t, map[string]int64{"a": 2})
	if a.Equal(b) || b.Equal(ledgerOf(t, map[string]int64{"b": 2})) {
		t.Error("different ledgers are equal")
	}
}

// Promise 2. If two ledgers have an allocation, the time by which it waits longer
// counts.
func TestMergedLedgerHasTheLaterTimes(t *testing.T) {
	a := ledgerOf(t, map[string]int64{"a": 1, "both": 5})
	b := ledgerOf(t, map[string]int64{"b": 2, "both": 7})
	want := map[string]int64{"a": 1, "b": 2, "both": 7}
	equal(t, "a with b", contents(t, a.Merge(b)), want)
	equal(t, "b with a", contents(t, b.Merge(a)), want)
	equal(t, "a with nothing", contents(t, a.Merge(reaper.Ledger{})), contents(t, a))
	equal(t, "nothing with a", contents(t, reaper.Ledger{}.Merge(a)), contents(t, a))
	equal(t, "a afterwards", contents(t, a), map[string]int64{"a": 1, "both": 5})
}

func TestShardsAreFewAndMergeToTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := rapid.MapOfN(rapid.String(), rapid.Int64Range(0, 1<<37), 0, 50).Draw(t, "seen")
		size := rapid.IntRange(1, 12).Draw(t, "size")
		l, err := reaper.DecodeLedger(fmt.Appendf(nil, `{"version":1,"seen":%s}`, mustJSON(t, seen)))
		if err != nil {
			t.Fatal(err)
		}
		shards := l.Shards(size)
		if want := max(1, (l.Len()+size-1)/size); len(shards) != want {
			t.Errorf("%d entries in shards of %d: %d shards, want %d", l.Len(), size, len(shards), want)
		}
		var merged reaper.Ledger
		for _, s := range shards {
			if s.Len() > size {
				t.Errorf("a shard of %d has %d entries", size, s.Len())
			}
			merged = merged.Merge(s)
		}
		if !merged.Equal(l) {
			t.Errorf("merged to %s, want %s", merged.Encode(), l.Encode())
		}
	})
}

func mustJSON(t *rapid.T, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Promise 2. No stored data makes DecodeLedger panic. A ledger that it decodes is
// encoded as it was.
func FuzzDecodeLedger(f *testing.F) {
	f.Add(reaper.Ledger{}.Encode())
	f.Add(ledgerOf(f, map[string]int64{"0123456789abcdefghijkl": noon.Unix(), "": 0}).Encode())
	f.Add([]byte(`{"version":1,"seen":{"a":1},"nodes":{"n1":["x","y"],"":["z"]},"figures":{"pods":7,"nodes":3}}`))
	f.Add([]byte(`{"version":1,"seen":{},"nodes":{"n1":["x","x"],"n2":["x"]},"figures":{"pods":-1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := reaper.DecodeLedger(data)
		if err != nil {
			if !errors.Is(err, reaper.ErrLedgerDamaged) || l.Len() != 0 {
				t.Errorf("%d entries with %v", l.Len(), err)
			}
			return
		}
		again, err := reaper.DecodeLedger(l.Encode())
		if err != nil || !again.Equal(l) {
			t.Errorf("%s is read as %s: %v", l.Encode(), again.Encode(), err)
		}
		merged := reaper.Ledger{}
		for _, s := range l.Shards(2) {
			merged = merged.Merge(s)
		}
		if !merged.Equal(l) {
			t.Errorf("%s in shards of 2 is %s", l.Encode(), merged.Encode())
		}
		for id, seconds := range contents(t, l) {
			if _, err := time.Unix(seconds, 0).UTC().MarshalJSON(); err != nil {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}
