package print

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// hostileTexts are texts with which a store, a journal or a server could deceive the reader
// of a report.
var hostileTexts = []string{
	"", " ", "10.0.0.1", "default/web-0", `C:\`, `\|`, "--- | ---", "- a: b", "no", "1e3",
	"\x1b[31mred\x1b[0m\x1b]8;;http://x\x07link", "a\nip-reaper: done\r\n\thint: type this", "\x00\x07\x08\x0b\x0c\x7f",
	"\u0085\u009b31m\u2028\u2029", "\u202egpj.\u2066x\u2069\u200e", "\u200b\u200d\u2060\ufeff\u00ad\u00a0", "\xff\xc3\x28\xed\xa0\x80", "\U000e0041\U0010ffff\ue000", "a\ufe0f\u3164b",
	"a|b\\|c\\\\|d", "<img src=x onerror=y><!-- &lt; &#60;", "[a](http://x) ![b](//y) [c]: z", "`a``b`", "*b* _i_ ~~s~~ $x$ # h",
	"@all see #1 at www.example.com or mailto:a@b.c", "`@|", "ünïcode ⚠ 漢字",
}

// unprintable are the characters that are not letters, marks, numbers, punctuation,
// symbols, spaces or line breaks, and some that have no width.
var unprintable = regexp.MustCompile(`[^\pL\pM\pN\pP\pS \n]|[\x{34f}\x{3164}\x{fe00}-\x{fe0f}]`)

// No text in a report of a run or of a restore moves the cursor, breaks out of its cell or
// becomes markup, and scripts read back the text as it is.
func FuzzFormats(f *testing.F) {
	f.Add("no", "1e3") // what means something else in YAML does so only on its own
	f.Add("- a: b", " ")
	for some := range slices.Chunk(hostileTexts, 4) {
		f.Add(strings.Join(some[:2], " "), strings.Join(some[2:], ""))
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		var run report.Report
		fill(reflect.ValueOf(&run).Elem(), one, other)
		wantHarmless(t, viewOf(run, false))
		var restore report.RestoreReport
		fill(reflect.ValueOf(&restore).Elem(), one, other)
		wantHarmless(t, viewOfRestore(restore))
	})
}

// fill sets each exported field: a text to one of the texts, in turns, and a slice to two
// elements.
func fill(v reflect.Value, texts ...string) {
	n := 0
	var set func(v reflect.Value)
	set = func(v reflect.Value) {
		switch value := v.Addr().Interface().(type) {
		case *time.Time:
			*value = noon
			return
		case **big.Int:
			*value = big.NewInt(30)
			return
		}
		switch v.Kind() {
		case reflect.String:
			v.SetString(texts[n%len(texts)])
			n++
		case reflect.Int:
			v.SetInt(1)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range 2 {
				set(v.Index(i))
			}
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			set(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					set(v.Field(i))
				}
			}
		default:
		}
	}
	set(v)
}

// wantHarmless prints a report in every format.
func wantHarmless(t rapid.TB, v view) {
	t.Helper()
	for _, name := range append(Formats(), `jsonpath={.entries[*]}{"\n"}{.entries[*].owner.pod}`) {
		format, err := formatOf(name)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := format.print(&out, v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := out.String()
		if found := unprintable.FindString(text); found != "" || !utf8.ValidString(text) {
			t.Fatalf("%s has %q, or no UTF-8:\n%q", name, found, text)
		}
		switch format.name {
		case "table", "wide":
			wantLines(t, text, v, format.name == "wide")
			wantOurColors(t, text, v, format)
		case "jsonpath":
			wantCount(t, text, 1)
		case "html":
			wantPage(t, text, v)
		}
	}
	wantSameValue(t, v)
}

// wantCount fails the test unless a text has a number of line breaks.
func wantCount(t rapid.TB, text string, want int) {
	t.Helper()
	if got := strings.Count(text, "\n"); got != want {
		t.Fatalf("%d lines, want %d:\n%s", got, want, text)
	}
}

// wantLines fails the test unless a text has one line for each notice, row, fold, warning
// and line of the conclusion.
func wantLines(t rapid.TB, text string, v view, wide bool) {
	t.Helper()
	want := len(v.caveats) + len(v.head) + len([]string{"empty line"}) + len(v.warnings) + len(v.conclusion)
	for _, table := range v.tables(wide) {
		if lines := table.lines(v, wide); len(lines) > 0 {
			want += len([]string{"empty line"}) + len(lines)
		}
	}
	wantCount(t, text, want)
}

// wantOurColors fails the test if the colours change anything but the looks.
func wantOurColors(t rapid.TB, plain string, v view, f format) {
	t.Helper()
	var out bytes.Buffer
	v.color = true
	if err := f.print(&out, v); err != nil {
		t.Fatal(err)
	}
	if got := escapes.ReplaceAllString(out.String(), ""); got != plain {
		t.Fatalf("with colours: %q\nwithout: %q", got, plain)
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// wantSameValue fails the test unless JSON decodes to the values of the report, and YAML to the printable
// ones.
func wantSameValue(t rapid.TB, v view) {
	t.Helper()
	data, err := json.Marshal(v.value)
	if err != nil {
		t.Fatal(err)
	}
	var asJSON, asYAML bytes.Buffer
	if err := errors.Join(printJSON(&asJSON, v), printYAML(&asYAML, v)); err != nil {
		t.Fatal(err)
	}
	var want, fromJSON, fromYAML any
	if err := errors.Join(json.Unmarshal(data, &want), json.Unmarshal(asJSON.Bytes(), &fromJSON), yaml.Unmarshal(asYAML.Bytes(), &fromYAML)); err != nil {
		t.Fatalf("%v:\n%s\n%s", err, asJSON.Bytes(), asYAML.Bytes())
	}
	if !cmp.Equal(want, fromJSON) {
		t.Fatalf("JSON has other values:\n%s", cmp.Diff(want, fromJSON))
	}
	data, err = json.Marshal(plainValue(want))
	if err = errors.Join(err, json.Unmarshal(data, &want)); err != nil || !cmp.Equal(want, fromYAML) {
		t.Fatalf("%v, or YAML has other values:\n%s", err, cmp.Diff(want, fromYAML))
	}
}
