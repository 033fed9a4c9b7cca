package print

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A page fits into a comment, and says how many lines did not: the lines on the page and
// those left out are all lines.
func TestPageHasItsSizeAndSaysWhatWasCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.SampledFrom([]string{"n", "_", "\u202e", "é", "@"}).Draw(t, "character"), rapid.IntRange(1, 300).Draw(t, "size"))
		r := drawReport(t)
		for i := range r.Entries {
			r.Entries[i].Owner.Pod = text
		}
		for range rapid.IntRange(0, 60).Draw(t, "warnings") {
			r.Warnings = append(r.Warnings, text)
		}
		for range rapid.IntRange(0, 60).Draw(t, "backends") {
			r.Backends = append(r.Backends, report.BackendReport{Name: "b", Message: text})
		}
		page, whole := printed(t, Options{Format: "markdown", All: true}, r), printed(t, Options{Format: "table", All: true}, r)
		if len(page) > maxPage {
			t.Fatalf("%d bytes", len(page))
		}
		if !strings.HasPrefix(page, "```\n0 leaked: ") || !strings.HasSuffix(page, "allocations would be released, nothing was written\n```\n") {
			t.Fatalf("the page lacks its first or last line:\n%s", page)
		}
		got, want := strings.Count(page, "\n")-len([]string{"fence", "fence"}), strings.Count(whole, "\n")
		if found := regexp.MustCompile(`\n… ([0-9,]+) lines? left out`).FindStringSubmatch(page); found != nil {
			cut, _ := strconv.Atoi(strings.ReplaceAll(found[1], ",", ""))
			got += cut - len([]string{"the line that says so"})
		}
		if got != want {
			t.Fatalf("the page has and leaves out %d lines, want %d", got, want)
		}
	})
}
