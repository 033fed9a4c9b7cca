package reaper_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// hashOf returns a key of version 1 that stands for a short name.
func hashOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

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
	if err := json.Unmarshal(l.Text(), &file); err != nil {
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

// The first run of a new program reads what the last run of the old one wrote.
func TestLedgerOfVersion1IsRead(t *testing.T) {
	text, err := os.ReadFile("testdata/ledger-v1.json")
	equal(t, "error", err, nil)
	l, err := reaper.DecodeLedger(text)
	equal(t, "error", err, nil)
	equal(t, "text", string(l.Text())+"\n", string(text))
	again, err := reaper.DecodeLedger(l.Encode())
	equal(t, "error", err, nil)
	equal(t, "text after it was written anew", string(again.Text())+"\n", string(text))
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
	id := hashOf("a")
	refused := []string{
		``, `null`, `{}`, `[]`, `"`, `{"version":1`, `{"version":2,"seen":{}}`, `{"version":-1,"seen":{}}`,
		`{"version":"1","seen":{}}`, `{"version":1,"seen":[]}`, `{"version":1,"seen":{"` + id + `":"yesterday"}}`,
		`{"version":1,"seen":{"` + id + `":1.5}}`, `{"version":1,"seen":{"` + id + `":1e30}}`, `{"version":1,"seen":{"` + id + `":-1}}`,
		`{"version":1,"seen":{"` + id + `":253402300800}}`, `{"version":1,"seen":{}} and more`,
	}
	whole := string(ledgerOf(t, map[string]int64{id: noon.Unix()}).Encode())
	for n := range len(whole) {
		refused = append(refused, whole[:n], whole[:n]+string(whole[n]^1)+whole[n+1:])
	}
	key, next, none := strings.Repeat("a", 16), strings.Repeat("b", 16), "\x00\x00\x00\x00"
	for _, lists := range []string{
		"\x02" + next + "\x01" + key + "\x01" + none,               // keys that are not in order
		"\x02" + key + "\x01" + key + "\x01" + none,                // a key twice
		"\x00\x00\x00\x02\x01b\x01a\x00",                           // names that are not in order
		"\x00\x00\x00\x02\x01a\x01a\x00",                           // a name twice
		"\x00\x00\x00\x00\x01" + key + "\x00",                      // a node without a name
		"\x00\x00\x00\x01\x01a\x01" + key + "\x01",                 // another one
		"\x00\x00\x01" + key + "\x80\x80\x80\x80\x08" + "\x00\x00", // a grace of 2^31 s
		"\x00" + none + "\x00",                                     // more bytes than lists
		none,                                                       // fewer
	} {
		body := []byte("\x02\x00\x00\x00\x00\x00" + lists)
		refused = append(refused, string(binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body))))
	}
	for _, text := range append(refused, whole+"\x00", "\x03"+whole[1:]) {
		l, err := reaper.DecodeLedger([]byte(text))
		if !errors.Is(err, reaper.ErrLedgerDamaged) {
			t.Errorf("%q: %v, want ErrLedgerDamaged", text, err)
		}
		equal(t, "entries of "+text, l.Len(), 0)
	}
}

// Promise 6. A ledger of a later version is no damaged one, whatever is in it.
func TestLedgerOfALaterVersionIsNoDamage(t *testing.T) {
	for version := byte(3); version < ' '; version++ {
		for _, rest := range []string{"", "anything", strings.Repeat("\x00", 1000)} {
			body := append([]byte{version}, rest...)
			l, err := reaper.DecodeLedger(binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body)))
			if !errors.Is(err, reaper.ErrLedgerNewer) || errors.Is(err, reaper.ErrLedgerDamaged) {
				t.Errorf("version %d: %v, want ErrLedgerNewer", version, err)
			}
			equal(t, "entries", l.Len(), 0)
		}
	}
}

// A key of version 1 that no allocation can have is left out.
func TestKeyThatNoAllocationHasIsLeftOut(t *testing.T) {
	l := ledgerOf(t, map[string]int64{hashOf("a"): 1, "": 2, "short": 3, "no base64, 22 bytes...": 4})
	equal(t, "seen", contents(t, l), map[string]int64{hashOf("a"): 1})
}

func TestEmptyLedgersAreEqual(t *testing.T) {
	decoded := ledgerOf(t, nil)
	if !decoded.Equal(reaper.Ledger{}) || !(reaper.Ledger{}).Equal(decoded) {
		t.Error("an empty ledger differs from the zero one")
	}
}

func TestLedgersOfOneSizeDiffer(t *testing.T) {
	a, b := ledgerOf(t, map[string]int64{hashOf("a"): 1}), ledgerOf(t, map[string]int64{hashOf("a"): 2})
	if a.Equal(b) || b.Equal(ledgerOf(t, map[string]int64{hashOf("b"): 2})) {
		t.Error("different ledgers are equal")
	}
}

// Promise 2. If two ledgers have an allocation, the time by which it waits longer
// counts.
func TestMergedLedgerHasTheLaterTimes(t *testing.T) {
	onlyA, onlyB, both := hashOf("a"), hashOf("b"), hashOf("both")
	a := ledgerOf(t, map[string]int64{onlyA: 1, both: 5})
	b := ledgerOf(t, map[string]int64{onlyB: 2, both: 7})
	want := map[string]int64{onlyA: 1, onlyB: 2, both: 7}
	equal(t, "a with b", contents(t, a.Merge(b)), want)
	equal(t, "b with a", contents(t, b.Merge(a)), want)
	equal(t, "a with nothing", contents(t, a.Merge(reaper.Ledger{})), contents(t, a))
	equal(t, "nothing with a", contents(t, reaper.Ledger{}.Merge(a)), contents(t, a))
	equal(t, "a afterwards", contents(t, a), map[string]int64{onlyA: 1, both: 5})
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
	l := ledgerOf(f, map[string]int64{hashOf("a"): noon.Unix(), hashOf("b"): 0})
	f.Add(l.Encode())
	f.Add(l.Text())
	f.Add(fmt.Appendf(nil, `{"version":1,"seen":{},"nodes":{"n1":[%q,%[1]q],"n2":[%[1]q]},"figures":{"pods":-1}}`, hashOf("a")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4 && data[0] == 2 { // no fuzzer finds a checksum
			body := data[:len(data)-4]
			data = binary.BigEndian.AppendUint32(slices.Clone(body), crc32.ChecksumIEEE(body))
		}
		l, err := reaper.DecodeLedger(data)
		if err != nil {
			if errors.Is(err, reaper.ErrLedgerDamaged) == errors.Is(err, reaper.ErrLedgerNewer) || l.Len() != 0 {
				t.Errorf("%d entries with %v", l.Len(), err)
			}
			return
		}
		again, err := reaper.DecodeLedger(l.Encode())
		if err != nil || !again.Equal(l) {
			t.Errorf("%s is read as %s: %v", l.Text(), again.Text(), err)
		}
		merged := reaper.Ledger{}.Merge(l.Shards(reaper.LedgerShards)...)
		if !merged.Equal(l) {
			t.Errorf("%s in shards is %s", l.Text(), merged.Text())
		}
		for id, seconds := range contents(t, l) {
			if _, err := time.Unix(seconds, 0).UTC().MarshalJSON(); err != nil {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}
