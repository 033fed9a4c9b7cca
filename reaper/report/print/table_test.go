package print

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// longReport is fullReport with long names, many entries and an address of IPv6.
func longReport() report.Report {
	r := fullReport()
	r.Networks = []report.NetworkReport{{Backend: "whereabouts", Name: "172.18.178.192/27", Range: "172.18.178.192/27", Usage: r.Pools[0].Usage, Pools: []string{r.Pools[0].Name}}}
	for i := range r.Entries {
		r.Entries[i].Owner.Pod = strings.Repeat("checkout-", 10)
		r.Entries[i].Note += ", node worker-17 is not ready since 2026-03-01T11:13:00Z"
	}
	for i := range 70 {
		e := r.Entries[3]
		e.IP, e.Outcome, e.Owner.Node = fmt.Sprintf("fd00:1234:5678:9abc:def0:1234:5678:%x", 0x9000+i), report.Planned, strings.Repeat("worker", 1+i%7)
		r.Entries = append(r.Entries, e)
	}
	return r
}

// A table fits the terminal, and elsewhere it has everything, so that grep finds it.
func TestTablesFitTheTerminal(t *testing.T) {
	r := longReport()
	for i := range r.Entries {
		r.Entries[i].Owner.Pod = "web-0"
	}
	r.Entries = r.Entries[:11]
	restored := report.RestoreReport{Run: r.Run, Warnings: r.Warnings, Entries: []report.RestoreEntry{{IP: "10.0.0.1", Backend: "whereabouts", Pool: strings.Repeat("pool", 8), Owner: r.Entries[0].Owner, Outcome: report.Taken, Error: strings.Repeat("taken ", 30)}}}
	code, released := 3, 12
	history := report.History{StateNamespace: "ip-reaper", Runs: []journal.PastRun{{
		Run: journal.Run{ID: "20260301-120000-ABCDEF", StartedAt: noon, By: strings.Repeat("someone", 9), Version: "v1.2.3"}, Recorded: 12,
		Result: &journal.Result{ExitCode: &code, Released: &released, Due: 20, Error: strings.Repeat("no answer ", 20)},
	}}}
	for name, write := range map[string]func(w io.Writer, width int) error{
		"run": func(w io.Writer, width int) error { return Write(w, Options{Format: "table", Width: width}, r) },
		"pools": func(w io.Writer, width int) error {
			return WritePools(w, Options{Format: "table", All: true, Top: "nodes", Limit: 3, Width: width}, r)
		},
		"restore": func(w io.Writer, width int) error {
			return WriteRestore(w, Options{Format: "table", Width: width}, restored)
		},
		"history": func(w io.Writer, width int) error {
			return WriteHistory(w, Options{Format: "table", Width: width}, history, r.Run)
		},
	} {
		var whole bytes.Buffer
		if err := write(&whole, 0); err != nil || strings.Contains(strings.ReplaceAll(whole.String(), "\n… ", ""), "…") {
			t.Errorf("%s shortens where there is no terminal: %v\n%s", name, err, whole.String())
		}
		for _, width := range []int{100, 140} {
			var text bytes.Buffer
			if err := write(&text, width); err != nil {
				t.Fatal(err)
			}
			head, tables, _ := strings.Cut(text.String(), "\n\n")
			tables = tables[:strings.LastIndex(tables, "\n\n")] // without the warnings and the conclusion
			if name != "pools" && !strings.Contains(tables+"\n", "…\n") {
				t.Errorf("%s at %d does not cut the end of a note:\n%s", name, width, tables)
			}
			for line := range strings.Lines(tables) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && !strings.HasPrefix(line, "… ") {
					t.Errorf("%s at %d has a line of %d:\n%s%s", name, width, n, head, line)
				}
			}
		}
	}
}

// Nobody can copy a name that is cut. So a narrow terminal shortens notes to their point, and then goes without the
// backend and the reason.
func TestNamesStayWholeOnANarrowTerminal(t *testing.T) {
	r := longReport()
	for width, spare := range map[int]bool{80: false, 100: false, 140: false, 400: true} {
		text := printed(t, Options{Format: "table", Width: width}, r)
		for _, e := range []report.Entry{r.Entries[2], r.Entries[6], r.Entries[9], r.Entries[20]} {
			words := []string{e.IP, e.Pool, podOf(e.Owner), lookOf(&e).word}
			if e.Outcome == report.Planned {
				words = append(words, e.Owner.Node)
			}
			if e.Verdict == judge.Suspected {
				words = append(words, "due in 14m")
			}
			if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
				has := func(word string) bool {
					return strings.Contains(line+"  ", word+"  ") || strings.Contains(line, word+"; ")
				}
				return !slices.ContainsFunc(words, func(word string) bool { return !has(word) }) &&
					strings.Contains(line, string(e.Reason)) == spare && strings.Contains(line, e.Backend) == spare
			}) {
				t.Errorf("at %d there is no row with %v, and with backend and reason %t, in\n%s", width, words, spare, text)
			}
		}
	}
}

// -o wide has everything on a terminal too.
func TestWideShortensNoID(t *testing.T) {
	r := longReport()
	r.Entries[2].Owner.Sandbox = strings.Repeat("0123456789abcdef", 4)
	text := printed(t, Options{Format: "wide", Width: 80}, r)
	if !strings.Contains(text, r.Entries[2].Owner.Sandbox) || !strings.Contains(text, r.Entries[2].Owner.Pod) {
		t.Errorf("wide prints\n%s", text)
	}
}

// A reader need not reckon with UTC. The clock is the report's.
func TestTimesSayHowFarTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"due 2026-03-01T12:14:00Z": "due 2026-03-01T12:14:00Z (in 14m)",
		"since 2026-03-01T11:13:20Z, 2026-02-27T11:00:00Z": "since 2026-03-01T11:13:20Z (46m ago), 2026-02-27T11:00:00Z (2d1h ago)",
		"2026-03-01T09:00:00Z":                             "2026-03-01T09:00:00Z (3h ago)",
		"2026-03-01T12:00:59Z":                             "2026-03-01T12:00:59Z",
		"2026-03-01T11:58:45Z":                             "2026-03-01T11:58:45Z (75s ago)",
		"2026-99-01T11:58:45Z":                             "2026-99-01T11:58:45Z",
	} {
		if got := aged(text, noon); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if got := aged(text, time.Time{}); got != text {
			t.Errorf("without a clock, %q becomes %q", text, got)
		}
	}
	for format, relative := range map[string]bool{"table": true, "wide": true, "json": false, "yaml": false} {
		r := longReport()
		r.Warnings = append(r.Warnings, "the lock is held since 2026-03-01T11:13:00Z")
		got := printed(t, Options{Format: format}, r)
		for _, want := range []string{"not ready since 2026-03-01T11:13:00Z (47m ago)", "held since 2026-03-01T11:13:00Z (47m ago)"} {
			if strings.Contains(got, want) != relative {
				t.Errorf("%s says %q: %t, want %t:\n%s", format, want, !relative, relative, got)
			}
		}
	}
}

// An address is one row, whichever stores hold it, and the row hides nothing that differs.
func TestAddressIsOneRow(t *testing.T) {
	const ip = "10.0.0.7"
	entry := func(backend string, v judge.Verdict, reason judge.Reason, o report.Fate) report.Entry {
		return report.Entry{Backend: backend, IP: ip, Owner: ipam.EntryOwner{Namespace: "shop", Pod: "cart"}, Verdict: v, Reason: reason, Outcome: o, Leaked: true, Note: "n"}
	}
	planned, reserved := entry("whereabouts", judge.Orphaned, judge.PodAbsent, report.Planned), entry("overlapping", judge.Orphaned, judge.PodAbsent, report.Planned)
	held, sibling := entry("whereabouts", judge.Held, judge.RuleHold, report.Kept), entry("overlapping", judge.Held, judge.SiblingKept, report.Kept)
	failed, released := entry("overlapping", judge.Orphaned, judge.PodAbsent, report.Failed), entry("whereabouts", judge.Orphaned, judge.PodAbsent, report.Released)
	failed.Error = "timeout"
	elsewhere, used, other := planned, planned, planned
	elsewhere.Network, used.Verdict, used.Outcome, other.Owner.Pod = "blue", judge.InUse, report.Kept, "api"
	for _, tt := range []struct {
		name    string
		entries []report.Entry
		want    []string
	}{
		{"an entry and its reservation", []report.Entry{reserved, planned}, []string{"overlapping, whereabouts|due|PodAbsent|n"}},
		{"a reservation that goes with its entry", []report.Entry{sibling, held}, []string{"whereabouts, overlapping|held|RuleHold|n"}},
		{"a release that failed in part", []report.Entry{released, failed}, []string{"overlapping, whereabouts|failed|PodAbsent|timeout; also whereabouts shop/cart released PodAbsent"}},
		{"two pods", []report.Entry{planned, other}, []string{"whereabouts|due|PodAbsent|n; also whereabouts shop/api due PodAbsent"}},
		{"two networks", []report.Entry{planned, elsewhere}, []string{"whereabouts|due|PodAbsent|n", "whereabouts|due|PodAbsent|n"}},
		{"what an earlier round released is in use again", []report.Entry{released, used}, []string{"whereabouts|released|PodAbsent|n", "whereabouts|in use|PodAbsent|n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, row := range entryTable(report.Report{Entries: tt.entries}, false, false).rows {
				got = append(got, strings.Join([]string{row[1], row[5], row[6], row[7]}, "|"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			all, want := entryTable(report.Report{Entries: tt.entries}, false, true), []string{"an address with several store entries is free once all of them are gone"}
			if len(all.rows) != len(tt.entries) {
				t.Errorf("--all has %d rows of %d allocations", len(all.rows), len(tt.entries))
			}
			if len(tt.want) > 1 { // each of one entry
				want = nil
			}
			if diff := cmp.Diff(want, all.below); diff != "" {
				t.Errorf("lines below (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShortenedTextKeepsBothEnds(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{"web-0", 5, "web-0"}, {"checkout-7d9f-x2b4q", 9, "chec…2b4q"}, {"äöüäöüäöü", 4, "äö…ü"}, {"", 3, ""},
	} {
		if got := shortened(tt.text, tt.width, tt.width/2); got != tt.want {
			t.Errorf("%q in %d characters is %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}
