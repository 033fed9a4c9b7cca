package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// noon is when the tests begin.
var noon = reapertest.Noon

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// fataler is a test, or a property of one.
type fataler interface{ Fatal(args ...any) }

// ledgerOfForm returns a ledger from its stored form.
func ledgerOfForm(t fataler, form ledgertest.Ledger) ledger.Ledger {
	l, err := ledger.Decode(form.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// formOf returns the stored form of a ledger.
func formOf(t fataler, l ledger.Ledger) ledgertest.Ledger {
	form, err := ledgertest.Decode(l.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return form
}

// ledgerOf returns a ledger with these seconds, by key.
func ledgerOf(t testing.TB, seen map[string]int64) ledger.Ledger {
	t.Helper()
	return ledgerOfForm(t, ledgertest.Ledger{Seen: seen})
}

func TestDamagedLedgerIsRefused(t *testing.T) {
	refused := []string{``, `null`, `{}`, "\x00\x00\x00\x00", `{"version":1,"seen":{}}`}
	whole := string(ledgerOf(t, map[string]int64{ledgertest.Key("a"): noon.Unix()}).Encode())
	for n := range len(whole) {
		refused = append(refused, whole[:n], whole[:n]+string(whole[n]^1)+whole[n+1:])
	}
	const backend, none, salted = "\x01\x00\x00\x00\x07", "\x00\x00\x00\x00\x00\x00", `{"salt":"c3Nzc3Nzc3Nzc3Nzc3Nzcw==","nodes":["a"]}`
	for name, form := range map[string]struct{ head, lists string }{
		"a key twice":                     {salted, backend + "\x02\x05\x00\x00\x00" + none[1:]},
		"a hash of more than 64 bits":     {salted, backend + "\x02\x05\x00" + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + "\x00" + none[1:]},
		"backends that are not in order":  {salted, "\x02\x00\x00\x00\x07\x01\x05\x00\x00\x00\x00\x06\x01\x05\x00" + none[1:]},
		"more entries than bytes":         {salted, backend + "\xff\xff\xff\x7f" + none},
		"a time after the last one":       {salted, backend + "\x01\x05\xff\xff\xff\xff\xff\x7f" + none[1:]},
		"a node without a name":           {salted, none[:3] + backend + "\x01\x05\x01" + none[4:]},
		"a grace of 2^31 s":               {salted, none[:2] + backend + "\x01\x05\x80\x80\x80\x80\x08" + none[3:]},
		"more bytes than lists":           {salted, none + "\x00"},
		"fewer":                           {salted, none[1:]},
		"a time before 1970":              {`{"epoch":-1}`, none},
		"times that begin after the last": {`{"epoch":253402300800}`, none},
		"a doubt after the last time":     {`{"doubt":{"At":253402300800}}`, none},
		"a run after the last time":       {`{"runs":[{"began":253402300800}]}`, none},
		"a meaning after the last time":   {`{"meanings":[{"seen":253402300800}]}`, none},
		"a head that is no object":        {`7`, none},
	} {
		_, err := ledger.Decode(ledgertest.Sum([]byte("\x09" + string(rune(len(form.head))) + form.head + form.lists)))
		if !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("%s: %v, want ErrLedgerDamaged", name, err)
		}
	}
	if _, err := ledger.Decode(ledgertest.Sum([]byte("\x09" + string(rune(len(salted))) + salted + none))); err != nil {
		t.Errorf("a form without any of these: %v", err)
	}
	for _, text := range append(refused, whole+"\x00", "\x0a"+whole[1:]) {
		l, err := ledger.Decode([]byte(text))
		if !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("%q: %v, want ErrLedgerDamaged", text, err)
		}
		equal(t, "entries of "+text, l.Len(), 0)
	}
}

// Promise 6. A ledger of a later version is not damaged, whatever is in it.
func TestLedgerOfALaterVersionIsNoDamage(t *testing.T) {
	for version := byte(10); version < ' '; version++ {
		for _, rest := range []string{"", "anything", strings.Repeat("\x00", 1000)} {
			body := append([]byte{version}, rest...)
			l, err := ledger.Decode(ledgertest.Sum(body))
			if !errors.Is(err, ledger.ErrNewer) || errors.Is(err, ledger.ErrDamaged) {
				t.Errorf("version %d: %v, want ErrLedgerNewer", version, err)
			}
			equal(t, "entries", l.Len(), 0)
		}
	}
}

// Promise 2. If two ledgers have an allocation, the time that makes it wait longer
// counts.
func TestMergedLedgerHasTheLaterTimes(t *testing.T) {
	onlyA, onlyB, both := ledgertest.Key("a"), ledgertest.Key("b"), ledgertest.Key("both")
	a := ledgerOf(t, map[string]int64{onlyA: 1, both: 5})
	b := ledgerOf(t, map[string]int64{onlyB: 2, both: 7})
	want := map[string]int64{onlyA: 1, onlyB: 2, both: 7}
	equal(t, "a with b", formOf(t, a.Merge(b)).Seen, want)
	equal(t, "b with a", formOf(t, b.Merge(a)).Seen, want)
	equal(t, "a with nothing", formOf(t, a.Merge(ledger.Ledger{})).Seen, formOf(t, a).Seen)
	equal(t, "nothing with a", formOf(t, ledger.Ledger{}.Merge(a)).Seen, formOf(t, a).Seen)
	salted := ledgerOfForm(t, ledgertest.Ledger{Salt: [16]byte{1}, Seen: map[string]int64{ledgertest.Key("y"): 7}})
	equal(t, "a with one of another salt", formOf(t, a.Merge(salted)).Seen, formOf(t, a).Seen)
	equal(t, "a afterwards", formOf(t, a).Seen, map[string]int64{onlyA: 1, both: 5})
}

// Promise 1, 2. Two ledgers know together what both know of the names of nodes. If that is too much,
// any name may mean any node.
func TestNoLedgerForgetsAMeaningForWantOfRoom(t *testing.T) {
	meaning := func(name, node string, seen int64) ledger.Meaning {
		return ledger.Meaning{Backend: "calico", Name: name, Node: node, Seen: seen}
	}
	a := ledger.Ledger{Meanings: []ledger.Meaning{meaning("n1", "n8", 5), meaning("n2", "n8", 1)}}
	b := ledger.Ledger{Meanings: []ledger.Meaning{meaning("n1", "n7", 2), meaning("n1", "n8", 7)}}
	both := []ledger.Meaning{meaning("n1", "n7", 2), meaning("n1", "n8", 7), meaning("n2", "n8", 1)}
	equal(t, "a with b", a.Merge(b).Meanings, both)
	equal(t, "b with a", b.Merge(a).Meanings, both)
	equal(t, "they are equal", a.Equal(b), false)

	var many []ledger.Meaning
	for i := range ledger.MaxMeanings {
		many = append(many, meaning("n1", fmt.Sprintf("%0253d", i), int64(i)))
	}
	all := ledger.ArrangeMeanings(many)
	equal(t, "as many as there is room for", all, many)
	if size := len(ledger.Ledger{Meanings: all}.Encode()); size > 1020<<10/2 {
		t.Errorf("they have %d bytes, want at most half of a ledger", size)
	}
	few := ledger.Meaning{Backend: "whereabouts", Name: "n1", Node: "n2", Seen: 3}
	unknown := []ledger.Meaning{meaning("", "", ledger.MaxMeanings-1), {Backend: "whereabouts", Seen: 3}}
	equal(t, "one too many", ledger.ArrangeMeanings(append(many, few)), unknown)
	equal(t, "after that", ledger.ArrangeMeanings(append(many, unknown...)), unknown)
}

// Promise 2. No stored data makes Decode panic. A ledger that it decodes is encoded
// as it was.
func FuzzDecodeLedger(f *testing.F) {
	f.Add(ledger.Ledger{}.Encode())
	l := ledgerOf(f, map[string]int64{ledgertest.Key("a"): noon.Unix(), ledgertest.Key("b"): 0})
	f.Add(l.Encode())
	f.Add(ledgertest.Ledger{Nodes: map[string]string{ledgertest.Key("a"): "n1", ledgertest.Key("b"): "n2"}, Doubt: ledgertest.Doubt{At: 1}}.Encode())
	f.Add(ledgertest.Ledger{Stores: map[string]string{"calico": "guid"}}.Encode())
	f.Add(ledgertest.Ledger{TotalReleased: map[string]uint64{"calico": 7}, TotalRuns: map[string]uint64{"done": 1}}.Encode())
	f.Add(ledgertest.Ledger{Runs: []ledgertest.Run{{ID: "run-1", Began: noon.Unix(), DryRun: true, Ended: true, ExitCode: 4, Due: 144, Error: "refused", RestoreOf: "run-0", Restore: ledgertest.Restore{Restored: 6}}}}.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4 && data[0] == 9 { // no fuzzer finds a checksum
			body := data[:len(data)-4]
			data = ledgertest.Sum(body)
		}
		l, err := ledger.Decode(data)
		if err != nil {
			if errors.Is(err, ledger.ErrDamaged) == errors.Is(err, ledger.ErrNewer) || l.Len() != 0 {
				t.Errorf("%d entries with %v", l.Len(), err)
			}
			return
		}
		again, err := ledger.Decode(l.Encode())
		if err != nil || !again.Equal(l) {
			t.Errorf("%+v is read as %+v: %v", formOf(t, l), formOf(t, again), err)
		}
		for id, seconds := range formOf(t, l).Seen {
			if _, err := time.Unix(seconds, 0).UTC().MarshalJSON(); err != nil {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

// Equal ledgers have equal forms, and the tests' reader of the form agrees with the program's.
func TestEqualLedgersHaveEqualForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLedger(t)
		again, err := ledger.Decode(l.Encode())
		if err != nil || !again.Equal(l) || !bytes.Equal(again.Encode(), l.Encode()) {
			t.Errorf("%+v is read as %+v, %v", formOf(t, l), formOf(t, again), err)
		}
		if form, err := ledgertest.Decode(l.Encode()); err != nil || !bytes.Equal(form.Encode(), l.Encode()) {
			t.Errorf("%+v has a form that the tests write as %+v, %v", formOf(t, l), form, err)
		}
		if other := drawLedger(t); bytes.Equal(other.Encode(), l.Encode()) != (other.Equal(l) && slices.Equal(other.Runs, l.Runs) && cmp.Equal(other.Totals, l.Totals)) {
			t.Errorf("%+v and %+v: forms and ledgers differ", formOf(t, l), formOf(t, other))
		}
	})
}

// drawLedger draws a ledger with everything that a ledger can have.
func drawLedger(t *rapid.T) ledger.Ledger {
	id := rapid.Map(rapid.StringMatching(`[a-d]{1,2}`), func(name string) string {
		key := ledgertest.Key(name)
		return fmt.Sprintf("%08x", len(name)) + key[8:] // of two backends
	})
	keys := rapid.MapOfN(id, rapid.Just(int64(0)), 0, 5)
	times := rapid.MapOfN(id, rapid.Int64Range(0, 1<<37), 0, 20)
	figures := rapid.Int64Range(0, 1000)
	totals := rapid.MapOf(rapid.StringMatching(`[a-c]`), rapid.Uint64())
	return ledgerOfForm(t, ledgertest.Ledger{
		Seen: times.Draw(t, "seen"), Restored: times.Draw(t, "restored"),
		Graces:  rapid.MapOfN(id, rapid.Int64Range(1, 1<<20), 0, 20).Draw(t, "graces"),
		Nodes:   rapid.MapOfN(id, rapid.SampledFrom([]string{"n1", "n2", "n10"}), 0, 20).Draw(t, "nodes"),
		Figures: ledgertest.Figures{Pods: figures.Draw(t, "pods"), Nodes: figures.Draw(t, "nodes")},
		Runs: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ledgertest.Run {
			return ledgertest.Run{
				ID: rapid.StringMatching(`[a-b]`).Draw(t, "run"), DryRun: rapid.Bool().Draw(t, "dry run"), Ended: rapid.Bool().Draw(t, "ended"),
				ExitCode: rapid.IntRange(0, 255).Draw(t, "exit code"), Due: figures.Draw(t, "due"), Error: rapid.String().Draw(t, "error"),
				RestoreOf: rapid.StringMatching(`[a-b]?`).Draw(t, "restored run"), Restore: ledgertest.Restore{Taken: figures.Draw(t, "taken")},
			}
		}), 0, ledger.MaxRuns).Draw(t, "runs"),
		Stores:        rapid.MapOf(rapid.StringMatching(`[a-c]`), rapid.String()).Draw(t, "stores"),
		TotalReleased: totals.Draw(t, "total released"), TotalRuns: totals.Draw(t, "total runs"),
		Unlisted: keys.Draw(t, "unlisted"), Unread: keys.Draw(t, "unread"),
		Meanings: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ledgertest.Meaning {
			name := rapid.SampledFrom([]string{"", "n1", "n2"})
			return ledgertest.Meaning{Backend: "calico", Name: name.Draw(t, "name"), Node: name.Draw(t, "node"), Seen: rapid.Int64Range(0, 1<<37).Draw(t, "seen")}
		}), 0, 4).Draw(t, "meanings"),
	})
}

// One ConfigMap has room for the nodes of 100,000 pods, on 1,000 nodes, and for the times of
// every tenth.
func TestLedgerOf110000EntriesFitsInOneConfigMap(t *testing.T) {
	form := ledgertest.Ledger{Seen: make(map[string]int64), Nodes: make(map[string]string)}
	for i := range 100_000 {
		key := ledgertest.Key(fmt.Sprint(i))
		form.Nodes[key] = fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i%1000/250, i%250)
		if i%10 == 0 {
			form.Seen[key] = 1_790_000_000 + int64(i)
		}
	}
	l := ledgerOfForm(t, form)
	if size := len(l.Encode()); l.Len() != 110_000 || size > 1020<<10 {
		t.Errorf("%d entries have %d bytes, want at most 1020 KiB", l.Len(), size)
	}
}

// Promise 1. If a ledger has no room for all entries, it leaves out the nodes first, and then the
// times. It keeps where pods hang, what was restored and how long pods may take to end for as long
// as it can: without these, an address may be released too early.
func TestFullLedgerLeavesOutWhatMattersLeast(t *testing.T) {
	key := ledgertest.Key
	all := ledgertest.Ledger{
		Restored: map[string]int64{key("restored"): noon.Unix()},
		Seen:     map[string]int64{key("old"): 1000, key("new"): 2000},
		Graces:   map[string]int64{key("grace"): 60},
		Nodes:    map[string]string{key("home"): "n1//", key("hung"): "n1/boot", key("live"): "n1"},
		Figures:  ledgertest.Figures{Pods: 7},
		Runs:     []ledgertest.Run{{ID: "run-1", Began: noon.Unix(), Ended: true}},

		TotalReleased: map[string]uint64{"calico": 7}, TotalRuns: map[string]uint64{"done": 1},

		Unlisted: map[string]int64{key("live"): 0, key("old"): 0, key("home"): 0},
		Unread:   map[string]int64{key("unread"): 0},
	}
	l := ledgerOfForm(t, all)
	for n, drop := range []func(){ // in their order
		func() {},
		func() { all.Unlisted, all.Unread = nil, nil },
		func() { delete(all.Nodes, key("live")) },
		func() { delete(all.Seen, key("new")) },
		func() { delete(all.Seen, key("old")) },
		func() { delete(all.Graces, key("grace")) },
		func() { delete(all.Restored, key("restored")) },
	} {
		drop()
		fitting, left := l.Fit(len(all.Encode()))
		equal(t, fmt.Sprintf("without %d", n), formOf(t, fitting), formOf(t, ledgerOfForm(t, all)))
		equal(t, "left out", left, max(0, n-1))
	}
}

// The nodes for which a full ledger has room are kept.
func TestFullLedgerKeepsSomeNodes(t *testing.T) {
	for _, boot := range []string{"", "/boot"} {
		form := ledgertest.Ledger{Nodes: map[string]string{ledgertest.Key("first"): "n1" + boot}}
		for i := range 10 {
			form.Nodes[ledgertest.Key(fmt.Sprint(i))] = "n1"
		}
		fitting, left := ledgerOfForm(t, form).Fit(len(form.Encode()) - 1)
		equal(t, "left out", left, 1)
		equal(t, "entries", fitting.Len(), 10)
	}
}
