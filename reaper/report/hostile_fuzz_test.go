package report

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

	"github.com/ip-reaper/ip-reaper/reaper"
)

// hostileTexts are texts by which a store, a journal or a server could deceive the reader
// of a report.
var hostileTexts = []string{
	"", " ", "10.0.0.1", "default/web-0", `C:\`, `\|`, "--- | ---", "- a: b", "no", "1e3",
	"\x1b[31mred\x1b[0m\x1b]8;;http://x\x07link", "a\nip-reaper: done\r\n\thint: type this", "\x00\x07\x08\x0b\x0c\x7f",
	"\u0085\u009b31m\u2028\u2029", "\u202egpj.\u2066x\u2069\u200e", "\u200b\u200d\u2060\ufeff\u00ad\u00a0", "\xff\xc3\x28\xed\xa0\x80", "\U000e0041\U0010ffff\ue000", "a\ufe0f\u3164b",
	"a|b\\|c\\\\|d", "<img src=x onerror=y><!-- &lt; &#60;", "[a](http://x) ![b](//y) [c]: z", "`a``b`", "*b* _i_ ~~s~~ $x$ # h",
	"@all see #1 at www.example.com or mailto:a@b.c", "`@|", "ünïcode ⚠ 漢字",
}

// unprintable are the characters that are no letters, marks, numbers, punctuation,
// symbols, spaces or line breaks, and some that have no width.
var unprintable = regexp.MustCompile(`[^\pL\pM\pN\pP\pS \n]|[\x{34f}\x{3164}\x{fe00}-\x{fe0f}]`)

// No text in a report of a run or of a restore moves the cursor, breaks out of its cell or
// becomes markup, and scripts read back the text as it is.
func FuzzFormats(f *testing.F) {
	for i, text := range hostileTexts {
		f.Add(text, hostileTexts[(i+7)%len(hostileTexts)])
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		var run reaper.Report
		fill(reflect.ValueOf(&run).Elem(), one, other)
		wantHarmless(t, viewOf(run))
		run.Run.DryRun = !run.Run.DryRun
		wantHarmless(t, viewOf(run))
		var restore reaper.RestoreReport
		fill(reflect.ValueOf(&restore).Elem(), one, other)
		wantHarmless(t, viewOfRestore(restore))
	})
}

func TestNoTextIsMarkup(t *testing.T) {
	text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("a |`\\<[]()@:/w.#&*_~$\x1b\n\t\u202e\u0085"))))
	rapid.Check(t, func(t *rapid.T) {
		var r reaper.Report
		fill(reflect.ValueOf(&r).Elem(), text.Draw(t, "one"), text.Draw(t, "other"))
		wantHarmless(t, viewOf(r))
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
func wantHarmless(t rapid.TB, v reportView) {
	t.Helper()
	for _, format := range formats {
		var out bytes.Buffer
		if err := format.print(&out, v); err != nil {
			t.Fatalf("%s: %v", format.name, err)
		}
		text := out.String()
		if found := unprintable.FindString(text); found != "" || !utf8.ValidString(text) {
			t.Fatalf("%s has %q, or no UTF-8:\n%q", format.name, found, text)
		}
		switch format.name {
		case "table", "wide":
			wantLines(t, text, v, format.name == "wide")
		case "markdown":
			wantMarkdown(t, text, v)
		}
	}
	wantSameValue(t, v)
}

// wantLines fails the test unless a text has one line for each row, warning and line of
// the conclusion.
func wantLines(t rapid.TB, text string, v reportView, wide bool) {
	t.Helper()
	want := len(v.warnings) + len(v.conclusion)
	for _, table := range v.tables(wide) {
		want += len(table.rows) + len([]string{"heading", "empty line"})
	}
	if got := strings.Count(text, "\n"); got != want {
		t.Fatalf("%d lines, want %d:\n%s", got, want, text)
	}
}

// wantMarkdown fails the test unless a page has the expected cells, and no cell and no
// sentence is markup.
func wantMarkdown(t rapid.TB, page string, v reportView) {
	t.Helper()
	var want, got []int // the cells of each row
	for _, table := range v.tables(false) {
		for range len(table.rows) + len([]string{"heading", "line below it"}) {
			want = append(want, len(table.heading))
		}
	}
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "|") {
			if sentence := strings.TrimPrefix(line, "**Warning:** "); !harmless(sentence) {
				t.Fatalf("the page has markup in %s", sentence)
			}
			continue
		}
		cells := cellsOf(line)
		got = append(got, len(cells))
		for _, cell := range cells {
			if !harmless(cell) {
				t.Fatalf("the page has markup in the cell %q of %s", cell, line)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the rows have %d cells, want %d:\n%s", got, want, page)
	}
}

// harmless reports whether a text is a span of code, or has nothing that becomes markup, a
// link or a mention.
func harmless(text string) bool {
	return code.MatchString(text) || escaped.MatchString(text) && !linked.MatchString(text)
}

var (
	code    = regexp.MustCompile("^`[^`|<]+`$")
	escaped = regexp.MustCompile("^(\\\\[[:punct:]]|[^]`*_~$<>&|[\\\\])*$")
	linked  = regexp.MustCompile(`(?i)[@#]|://|www\.`)
)

// cellsOf cuts a row into its cells as GitHub does: a backslash escapes the character
// behind it.
func cellsOf(row string) []string {
	var cells []string
	begin := 0
	for i := 0; i < len(row); i++ {
		switch row[i] {
		case '\\':
			i++
		case '|':
			if i > 0 {
				cells = append(cells, strings.Trim(row[begin:i], " "))
			}
			begin = i + 1
		}
	}
	return cells
}

// wantSameValue fails the test unless JSON and YAML decode to the values of the report.
func wantSameValue(t rapid.TB, v reportView) {
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
	if !cmp.Equal(want, fromJSON) || !cmp.Equal(want, fromYAML) {
		t.Fatalf("JSON or YAML has other values:\n%s\n%s", cmp.Diff(want, fromJSON), cmp.Diff(want, fromYAML))
	}
}
