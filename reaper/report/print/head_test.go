package print

import (
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A dry run of a refused plan never reads as approved.
func TestRefusedDryRunPlansNothing(t *testing.T) {
	r := refusedReport()
	r.Run.DryRun = true
	for i := range r.Entries {
		r.Entries[i].Outcome = report.Planned
	}
	if got := printed(t, Options{Format: "name"}, r); got != "" {
		t.Errorf("name prints %q", got)
	}
	for _, format := range []string{"table", "wide", "markdown"} {
		if got := printed(t, Options{Format: format}, r); strings.Contains(got, "would be released") || !strings.Contains(got, "is refused, nothing was written") {
			t.Errorf("%s reads as approved:\n%s", format, got)
		}
	}
}

// What could not be listed is not 0.
func TestUnknownIsNotZero(t *testing.T) {
	r := fullReport()
	r.Pools = slices.Repeat(r.Pools[2:], 30)
	r.Leaked = nil
	for _, format := range []string{"table", "wide", "markdown"} {
		if got := printed(t, Options{Format: format}, r); !strings.Contains(got, "unknown how much is leaked") || !strings.Contains(got, "… and 30 pools, leaked in them: unknown\n") && format != "wide" {
			t.Errorf("%s knows what is leaked:\n%s", format, got)
		}
	}
}

// Without memory, the next run begins the grace periods again.
func TestNoDueTimeWithoutMemory(t *testing.T) {
	const due = "2026-03-01T12:15:00Z"
	for _, memory := range []bool{false, true} {
		r := fullReport()
		r.Run.Memory, r.Run.DryRun = memory, true
		for _, format := range []string{"table", "wide", "markdown"} {
			text := printed(t, Options{Format: format}, r)
			if strings.Contains(text, due) != memory {
				t.Errorf("%s with memory %t:\n%s", format, memory, text)
			}
		}
	}
}

// A script that reads -q sees a refused plan, and nothing else.
func TestQuietPrintsTheBottomLineAndRefusals(t *testing.T) {
	want, _, _ := strings.Cut(printed(t, Options{Format: "table"}, refusedReport()), "run 2026")
	if got := printed(t, Options{Format: "table", Quiet: true}, refusedReport()); got != want || strings.Count(got, "\n") != 3 {
		t.Errorf("quiet prints %q, want %q", got, want)
	}
}

// A store has no way to colour a text, and none to look like a word of ours.
func TestOnlyOurWordsHaveColours(t *testing.T) {
	r := fullReport()
	r.Entries[0].Owner = ipam.EntryOwner{Pod: "released"}
	r.Entries[0].Note, r.Entries[0].Pool = "failed", "failed"
	text := printed(t, Options{Format: "wide", Color: true}, r)
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "172.18.178.196") {
			continue
		}
		if got, want := escapes.FindAllString(line, -1), []string{dim, reset}; strings.Join(got, "") != strings.Join(want, "") || !strings.Contains(line, dim+"kept"+reset) {
			t.Errorf("colours %q in %q, want kept alone", got, line)
		}
	}
	for _, want := range []string{alarm + "FAILED" + reset + " exit", red + "failed" + reset, green + "released" + reset, yellow + "warning:" + reset} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if plain := printed(t, Options{Format: "wide"}, r); escapes.MatchString(plain) {
		t.Error("there are colours without Options.Color")
	}
}
