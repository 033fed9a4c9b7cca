package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestReportFormats(t *testing.T) {
	for name, report := range map[string]reaper.Report{
		"empty": emptyReport(), "full": fullReport(), "hostile": hostileReport(), "refused": refusedReport(), "large": largeReport(),
	} {
		for _, format := range Formats() {
			if name == "large" && !slices.Contains([]string{"table", "markdown"}, format) {
				continue // the others have every entry
			}
			if format == "html" {
				continue // the page is large, and its data is that of JSON: see TestPageHasTheReport
			}
			t.Run(name+" as "+format, func(t *testing.T) {
				var got bytes.Buffer
				if err := Write(&got, Options{Format: format}, report); err != nil {
					t.Fatal(err)
				}
				sameAsGolden(t, name+"."+format, got.String())
			})
		}
	}
}

// sameAsGolden compares a text with a file of testdata. With -update, it writes the file.
func sameAsGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if it should, run the test with -update (-want +got):\n%s", file, diff)
	}
}

// YAML and JSON are the same value for any text and any number.
func TestYAMLReadsBackAsTheJSON(t *testing.T) {
	for name, report := range map[string]reaper.Report{"empty": emptyReport(), "full": fullReport(), "hostile": hostileReport()} {
		t.Run(name, func(t *testing.T) { sameInYAML(t, report) })
	}
	rapid.Check(t, func(t *rapid.T) {
		r := emptyReport()
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,12}`),
			rapid.SampledFrom([]string{"no", "null", "~", "1e3", "0x1f", "2026-03-01", "- a", "a: b", "#", "|", "\x7f", "\u0085", "\ufeff", "a\n\nb\n", " "}))
		r.Warnings = rapid.SliceOfN(text, 1, 4).Draw(t, "warnings")
		sameInYAML(t, r)
	})
}

func sameInYAML(t interface {
	Helper()
	Fatalf(string, ...any)
}, report reaper.Report) {
	t.Helper()
	var asJSON, asYAML bytes.Buffer
	if err := printJSON(&asJSON, viewOf(report, Options{})); err != nil {
		t.Fatalf("%v", err)
	}
	if err := printYAML(&asYAML, viewOf(report, Options{})); err != nil {
		t.Fatalf("%v", err)
	}
	var want, got any
	if err := json.Unmarshal(asJSON.Bytes(), &want); err != nil {
		t.Fatalf("%v", err)
	}
	if err := yaml.Unmarshal(asYAML.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, asYAML.Bytes())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("YAML is not the JSON (-JSON +YAML):\n%s\n%s", diff, asYAML.Bytes())
	}
}

// A number that is too large for a float64 is still all there.
func TestCapacityBeyond64BitsIsExact(t *testing.T) {
	for _, format := range []string{"table", "wide", "json", "yaml", "markdown", "jsonpath={.pools[*].capacity}"} {
		if got := printed(t, Options{Format: format}, fullReport()); !strings.Contains(got, "1208925819614629174706174") {
			t.Errorf("%s does not say 1208925819614629174706174:\n%s", format, got)
		}
	}
}

// A table is as wide as its widest cell in each row. A page and a table for people do not
// grow with one name.
func TestLongCellIsCutOff(t *testing.T) {
	r := fullReport()
	r.Entries[0].Owner.Pod = strings.Repeat("é", 1<<20)
	for _, name := range []string{"table", "wide", "markdown"} {
		text := printed(t, Options{Format: name, All: true, NoTrunc: true}, r)
		if len(text) > 64<<10 || !strings.Contains(text, "éé…") {
			t.Errorf("%s has %d bytes, or a name that is not cut off", name, len(text))
		}
	}
}

// Users name the formats in scripts.
func TestNoFormatIsLost(t *testing.T) {
	for _, name := range []string{"html", "json", "markdown", "name", "table", "wide", "yaml"} {
		if !slices.Contains(Formats(), name) {
			t.Errorf("formats = %v, without %s", Formats(), name)
		}
	}
}

func TestFormatListIsForASentence(t *testing.T) {
	if got := FormatList(); !strings.HasPrefix(got, "table, wide, ") || !strings.HasSuffix(got, ", jsonpath=TEMPLATE or custom-columns=SPEC") {
		t.Errorf("FormatList() = %s", got)
	}
}

func TestDocsNameEveryFormat(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(Formats(), "jsonpath=TEMPLATE", "custom-columns=SPEC") {
		if !regexp.MustCompile("`(-o )?" + name + "`").Match(page) {
			t.Errorf("docs/report.md does not name the output format `%s`", name)
		}
	}
}

// Without --all, only the wide format and HTML have the allocations that are in use.
func TestAllocationsInUseAreLeftOut(t *testing.T) {
	const inUse = "172.18.178.196"
	for _, format := range slices.DeleteFunc(Formats(), func(name string) bool { return name == "name" }) {
		for _, all := range []bool{false, true} {
			out := printed(t, Options{Format: format, All: all}, fullReport())
			if got, want := strings.Contains(out, inUse), all || format == "wide" || format == "html"; got != want {
				t.Errorf("%s with all %t: allocation in use printed: %t, want %t", format, all, got, want)
			}
		}
	}
}

// printed returns what Write prints.
func printed(t rapid.TB, o Options, r reaper.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, o, r); err != nil {
		t.Fatalf("%s: %v", o.Format, err)
	}
	return out.String()
}
