package print

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Users read and script against these texts. A page of HTML has the data of the JSON: see
// FuzzFormats.
func TestReportFormats(t *testing.T) {
	for _, tt := range []struct {
		name    string
		report  report.Report
		formats []string
	}{
		{"empty", emptyReport(), []string{"table", "json"}},
		{"full", fullReport(), []string{"table", "wide", "json", "name"}},
		{"hostile", hostileReport(), []string{"table", "yaml"}},
		{"refused", refusedReport(), []string{"table", "json", "name"}},
	} {
		for _, format := range tt.formats {
			t.Run(tt.name+" as "+format, func(t *testing.T) {
				sameAsGolden(t, tt.name+"."+format, printed(t, Options{Format: format}, tt.report))
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
	if strings.HasSuffix(name, ".json") {
		if err := reapertest.Valid(filepath.Join("..", "..", ".."), []byte(got)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A report whose entries are written one by one is the same as one encoded as a whole, even if
// texts from elsewhere look like the place of the entries.
func TestJSONIsTheWholeReport(t *testing.T) {
	for n := range 3 {
		r := hostileReport()
		r.Entries, r.Warnings = r.Entries[:n], append(r.Warnings, "\n  \"entries\": []")
		whole, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		_, _ = printable.JSON(&want).Write(append(whole, '\n'))
		if diff := cmp.Diff(want.String(), printed(t, Options{Format: "json"}, r)); diff != "" {
			t.Errorf("%d entries (-want +got):\n%s", n, diff)
		}
	}
}

// A writer that fails ends the report with its error.
func TestReportReturnsTheErrorOfItsWriter(t *testing.T) {
	read, write := io.Pipe()
	_ = read.Close()
	for _, format := range Formats() {
		if err := Write(write, Options{Format: format}, fullReport()); err == nil {
			t.Errorf("%s: no error", format)
		}
	}
}

// A number that is too large for a float64 is still all there for a program, and short for people.
func TestCapacityBeyond64BitsIsExact(t *testing.T) {
	if got := printed(t, Options{Format: "wide"}, fullReport()); !strings.Contains(got, " 1.21e+24\n") {
		t.Errorf("wide does not say 1.21e+24:\n%s", got)
	}
	for _, format := range []string{"json", "yaml", "jsonpath={.pools[*].capacity}"} {
		if got := printed(t, Options{Format: format}, fullReport()); !strings.Contains(got, "1208925819614629174706174") {
			t.Errorf("%s does not say 1208925819614629174706174:\n%s", format, got)
		}
	}
}

// Every row of a table is as wide as its widest cell. A table for people does not grow with one
// name.
func TestLongCellIsCutOff(t *testing.T) {
	r := fullReport()
	r.Entries[0].Owner.Pod = strings.Repeat("é", 1<<20)
	for _, name := range []string{"table", "wide"} {
		text := printed(t, Options{Format: name, All: true}, r)
		if len(text) > 64<<10 || !strings.Contains(text, "éé…") {
			t.Errorf("%s has %d bytes, or a name that is not cut off", name, len(text))
		}
	}
}

// A format that the page does not name would never be found.
func TestDocsNameEveryFormat(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Formats() {
		if !regexp.MustCompile("`(-o )?" + name + "`").Match(page) {
			t.Errorf("docs/report.md does not name the output format `%s`", name)
		}
	}
}

// Without --all, only the wide format and HTML have the allocations that are in use.
func TestAllocationsInUseAreLeftOut(t *testing.T) {
	const inUse = "172.18.178.196"
	for _, format := range slices.DeleteFunc(Formats(), func(name string) bool { return name == "name" || name == "jsonpath=TEMPLATE" }) {
		for _, all := range []bool{false, true} {
			out := printed(t, Options{Format: format, All: all}, fullReport())
			if got, want := strings.Contains(out, inUse), all || format == "wide" || format == "html"; got != want {
				t.Errorf("%s with all %t: allocation in use printed: %t, want %t", format, all, got, want)
			}
		}
	}
}

// printed returns what Write prints.
func printed(t rapid.TB, o Options, r report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, o, r); err != nil {
		t.Fatalf("%s: %v", o.Format, err)
	}
	return out.String()
}
