package report

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// forPeople are the formats that a person reads.
var forPeople = []Options{{Format: "table"}, {Format: "wide"}, {Format: "markdown"}, {Format: "table", Quiet: true}}

// A refused plan never reads as approved: each limit and its remedy are above the tables.
func TestRefusedPlanIsSaidFirst(t *testing.T) {
	for _, o := range forPeople {
		text := strings.TrimPrefix(printed(t, o, refusedReport()), "```\n")
		lines := strings.Split(text, "\n")
		for i, want := range []string{
			"2 leaked: 0 released, 2 still due but refused, 0 waiting, 0 held",
			"REFUSED limits.maxReleases: the plan releases 2 of 3 allocations, allowed is 1; look at the plan; if it is right, raise limits.maxReleases",
			"REFUSED limits.maxFraction: the plan releases 0.67 of the allocations, allowed is 0.5; look at the plan; if it is right, raise limits.maxFraction",
		} {
			if len(lines) <= i || lines[i] != want {
				t.Errorf("%+v: line %d of\n%s\nis not %q", o, i, text, want)
			}
		}
	}
}

// Nor does a dry run of that plan, in a format that lists what would be released.
func TestRefusedDryRunPlansNothing(t *testing.T) {
	r := refusedReport()
	r.Run.DryRun = true
	for i := range r.Entries {
		r.Entries[i].Outcome = reaper.Planned
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

func TestFailureIsSaidAboveTheTables(t *testing.T) {
	for _, o := range forPeople {
		text := printed(t, o, fullReport())
		at, heading := strings.Index(text, "FAILED"), strings.Index(text, "BACKEND")
		if at < 0 || heading >= 0 && at > heading || !strings.Contains(text, "exit code 3: calico: list blocks: forbidden") {
			t.Errorf("%+v does not begin with the failure:\n%s", o, text)
		}
	}
}

// What could not be listed is not 0.
func TestUnknownIsNotZero(t *testing.T) {
	for _, format := range []string{"table", "wide", "markdown"} {
		for line := range strings.Lines(printed(t, Options{Format: format}, fullReport())) {
			words := strings.Fields(strings.ReplaceAll(line, "|", ""))
			if len(words) > 2 && words[0] == "calico" && (words[1] != "failed" || words[2] != "unknown" || strings.Contains(line, " 0 ")) {
				t.Errorf("%s: a store that failed has counts: %s", format, line)
			}
			if len(words) > 2 && words[0] == "overlapping" && words[2] != "-" {
				t.Errorf("%s: a store that was skipped has counts: %s", format, line)
			}
		}
	}
	r := largeReport()
	r.Leaked = nil
	for _, format := range []string{"table", "wide", "markdown"} {
		if got := printed(t, Options{Format: format}, r); !strings.Contains(got, "unknown how much is leaked") || strings.Contains(got, "without a finding") {
			t.Errorf("%s knows what is leaked:\n%s", format, got[:500])
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
			if strings.Contains(text, due) != memory || strings.Contains(text, "no due times: ") == memory {
				t.Errorf("%s with memory %t:\n%s", format, memory, text)
			}
		}
	}
}

func TestQuietPrintsTheBottomLineOnly(t *testing.T) {
	if got, want := printed(t, Options{Format: "table", Quiet: true}, largeReport()), "392 leaked: 144 due now, 112 waiting, 136 held (136 node unreachable)\n"; got != want {
		t.Errorf("quiet prints %q, want %q", got, want)
	}
}

// A store has no way to colour a text, and none to look like a word of ours.
func TestOnlyOurWordsHaveColours(t *testing.T) {
	r := fullReport()
	r.Entries[0].Owner = reaper.EntryOwner{Pod: "released"}
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
