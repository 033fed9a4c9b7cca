package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// journaled is the run whose journals are tested.
var journaled = journal.Run{ID: "20260301-120000-ABCDEF", StartedAt: noon, Version: "v1", Cluster: "https://cluster?a=1&b=2"}

// record is one with a stored form.
func record(key, stored string) ipam.Record {
	return ipam.Record{
		Backend: "whereabouts", Pool: "kube-system/10.0.0.0-24", Key: key, IP: "10.0.0.1",
		Owner: ipam.EntryOwner{Namespace: "shop", Pod: "web"}, Stored: json.RawMessage(stored),
	}
}

// encode returns the parts of the run's write.
func encode(t testing.TB, write int, records ...ipam.Record) [][]byte {
	t.Helper()
	parts, err := encoded(journaled, write, records)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// encoded returns the parts of a write as lines.
func encoded(run journal.Run, write int, records []ipam.Record) (lines [][]byte, err error) {
	parts, err := journal.Split(run, write, records)
	for _, p := range parts {
		line, err := p.Encode()
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, err
}

// decoded reads parts as they were found in places "1", "2" and so on.
func decoded(parts ...[]byte) []journal.StoredPart {
	var stored []journal.StoredPart
	for i, data := range parts {
		part, err := journal.DecodePart(data)
		stored = append(stored, journal.StoredPart{Name: fmt.Sprint("place ", i+1), Part: part, Err: err})
	}
	return stored
}

// A later version must read what this one wrote.
func TestJournalForm(t *testing.T) {
	parts := encode(t, 2, record("7", `{"id":"a"}`), ipam.Record{
		Backend: "calico", Pool: "b", Key: "handle", Stored: json.RawMessage(`1`),
	})
	equal(t, "parts", len(parts), 1)
	equal(t, "the part", string(parts[0]), `{"kind":"ReapJournal","version":1,`+
		`"run":{"id":"20260301-120000-ABCDEF","startedAt":"2026-03-01T12:00:00Z","version":"v1","cluster":"https://cluster?a=1&b=2"},`+
		`"write":2,"part":1,"parts":1,"records":[`+
		`{"backend":"whereabouts","pool":"kube-system/10.0.0.0-24","key":"7","ip":"10.0.0.1","owner":{"namespace":"shop","pod":"web"},"stored":{"id":"a"}},`+
		`{"backend":"calico","pool":"b","key":"handle","owner":{},"stored":1}]}`)
}

// Promise 10: what is put back is what was there.
func TestStoredFormIsKeptByteForByte(t *testing.T) {
	for _, stored := range []string{
		`{"a":"<b>&</b>"}`, "\"line\u2028separator\u2029\"", `"\u2028\u003c\/\u0041"`, `9223372036854775808`, `-9223372036854775809`,
		`18446744073709551616.000`, `1E400`, `{"z":1,"a":2,"m":3}`, `{"a":1,"a":2,"A":3}`, `{"":null}`, `[null,true,{},[]]`,
		`false`, `""`, "\"\x80 is no UTF-8\"", `"\ud800"`, `{"kind":"ReapJournal","version":2,"records":[]}`,
		strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
	} {
		r := record("7", stored)
		journal, err := journal.Assemble(journaled.ID, decoded(encode(t, 1, r)...))
		if err != nil {
			t.Fatalf("%.40s: %v", stored, err)
		}
		equal(t, "records", journal.Records, []ipam.Record{r})
	}
}

// An API server refuses larger objects, and then nothing could be released.
func TestJournalIsSplitIntoPartsThatAConfigMapHolds(t *testing.T) {
	sized := func(n int) ipam.Record { return record("7", `"`+strings.Repeat("x", n)+`"`) }
	for _, tt := range []struct {
		name    string
		records []ipam.Record
		want    []int // records of each part
	}{
		{"small ones share one", []ipam.Record{sized(100 << 10), sized(100 << 10), sized(100 << 10)}, []int{3}},
		{"half a MiB each", []ipam.Record{sized(200 << 10), sized(200 << 10), sized(200 << 10), sized(200 << 10)}, []int{2, 2}},
		{"a large one alone", []ipam.Record{sized(1 << 10), sized(507 << 10), sized(1 << 10), sized(1)}, []int{1, 1, 2}},
		{"large ones", []ipam.Record{sized(507 << 10), sized(507 << 10)}, []int{1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []int
			var all []ipam.Record
			for i, data := range encode(t, 3, tt.records...) {
				part, err := journal.DecodePart(data)
				if err != nil {
					t.Fatal(err)
				}
				if len(data) > journal.MaxPart {
					t.Errorf("part %d has %d bytes", i+1, len(data))
				}
				equal(t, "place", [3]int{part.Write, part.Part, part.Parts}, [3]int{3, i + 1, len(tt.want)})
				got = append(got, len(part.Records))
				all = append(all, part.Records...)
			}
			equal(t, "records of each part", got, tt.want)
			for i, r := range tt.records {
				if !bytes.Equal(all[i].Stored, r.Stored) {
					t.Errorf("record %d has %d bytes that differ from the %d that were stored", i+1, len(all[i].Stored), len(r.Stored))
				}
			}
		})
	}
}

// Promise 10: what could not be put back is not written, so that it is not
// released.
func TestRecordThatCouldNotBeReadBackIsRefused(t *testing.T) {
	good := record("7", `{}`)
	change := func(change func(*ipam.Record)) ipam.Record {
		r := good
		change(&r)
		return r
	}
	for name, r := range map[string]ipam.Record{
		"too large":             record("7", `"`+strings.Repeat("x", journal.MaxPart)+`"`),
		"nothing stored":        change(func(r *ipam.Record) { r.Stored = nil }),
		"null":                  record("7", `null`),
		"no JSON":               record("7", `{"a":`),
		"a key that is no text": record("\xff7", `{}`),
		"no backend":            change(func(r *ipam.Record) { r.Backend = "" }),
		"an IP that is none":    change(func(r *ipam.Record) { r.IP = "10.0.0.256" }),
	} {
		t.Run(name, func(t *testing.T) {
			parts, err := encoded(journaled, 1, []ipam.Record{good, r, good, r, good})
			var unfit *journal.UnfitError
			if !errors.As(err, &unfit) || parts != nil {
				t.Fatalf("%d parts, %v, want a *reaper.UnfitError", len(parts), err)
			}
			equal(t, "unfit records", slices.Sorted(maps.Keys(unfit.Records)), []int{1, 3})
			for _, word := range []string{r.Backend, r.Pool} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v does not name %q", err, word)
				}
			}
		})
	}
}

// A value can be as deep as JSON allows only outside a journal.
func TestRecordThatIsTooDeepIsRefused(t *testing.T) {
	r := record("7", strings.Repeat("[", 9999)+strings.Repeat("]", 9999))
	if _, err := encoded(journaled, 1, []ipam.Record{r}); err == nil {
		t.Error("what cannot be read back was encoded")
	}
}

// Promise 2: what is not understood is not put back.
func TestDamagedPartIsRefused(t *testing.T) {
	whole := string(encode(t, 1, record("7", `{"a":1}`))[0])
	if _, err := journal.DecodePart([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{whole, `null`, "kind"},
		{`"kind":"ReapJournal"`, `"kind":"ReapReport"`, `kind "ReapReport"`},
		{`"version":1,`, `"version":2,`, "version 2, this program reads 1: use the newer ip-reaper"},
		{`"id":"20260301-120000-ABCDEF"`, `"id":""`, `run "", which is not the ID of a run`},
		{`"id":"20260301-120000-ABCDEF"`, `"id":"../../etc"`, `run "../../etc", which is not the ID of a run`},
		{`"write":1`, `"write":9223372036854775807`, "is not the number"},
		{`"part":1`, `"part":2`, "part 2 of 1"},
		{`"records":[`, `"records":[],"old":[`, "no records"},
		{`"backend":"whereabouts",`, ``, "the record has no backend, pool or key"},
		{`"ip":"10.0.0.1"`, `"ip":"10.0.0"`, "10.0.0"},
		{`"stored":{"a":1}`, `"stored":null`, "stored"},
		{`]}`, `]} and more`, ""},
		{`]}`, `]}` + strings.Repeat(" ", journal.MaxPart), "more than"},
	} {
		text := strings.Replace(whole, tt.old, tt.new, 1)
		part, err := journal.DecodePart([]byte(text))
		if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.300s: %v, want ErrJournalDamaged with %q", text, err, tt.want)
		}
		equal(t, "part", part, journal.Part{})
	}
}
