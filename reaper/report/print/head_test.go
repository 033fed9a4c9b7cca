package print

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
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
	for _, format := range []string{"table", "wide"} {
		if got := printed(t, Options{Format: format}, r); strings.Contains(got, "would be released") || !strings.Contains(got, "is refused, nothing was written") {
			t.Errorf("%s reads as approved:\n%s", format, got)
		}
	}
}

// Above the table, a plan says how much of it rests on one cause alone, as of a fence.
func TestPlanSaysHowMuchIsDueForOneCauseAlone(t *testing.T) {
	r := emptyReport()
	add := func(ip string, fate report.Fate, source, says string) {
		r.Entries = append(r.Entries, report.Entry{
			IP: ip, Verdict: judge.Orphaned, Leaked: true, Outcome: fate, Address: &report.Address{Fate: fate},
			Owner:    ipam.EntryOwner{Node: "worker-5"},
			Evidence: []judge.Evidence{{Source: "list of pods", Says: "the pod does not exist"}, {Source: source, Says: says}},
		})
		r.Leaked.Due++
	}
	add("10.0.0.1", report.Planned, "node worker-5", "it is fenced")
	add("10.0.0.2", report.Planned, "node worker-5", "it is fenced")
	add("10.0.0.3", report.Planned, "policy", "pods.finished is release")
	add("10.0.0.4", report.Planned, "store", "it has one")
	fenced, finished := "2 of 4 became due only because node worker-5 is fenced\n", "1 of 4 became due only because pods.finished is release in the policy\n"
	got := printed(t, Options{Format: "table"}, r)
	if !strings.Contains(got, fenced) || !strings.Contains(got, finished) || strings.Count(got, "only because") != 2 {
		t.Errorf("a plan prints\n%s", got)
	}
	if row := "10.0.0.1  worker-5  due\n"; !strings.Contains(got, row) {
		t.Errorf("no row %q in\n%s", row, got)
	}
	for i := range 3 {
		add(fmt.Sprint("10.0.1.", i), report.Planned, "node n"+strconv.Itoa(i), "it is fenced")
	}
	got = printed(t, Options{Format: "table"}, r)
	if strings.Count(got, "only because") != 3 || !strings.Contains(got, "… and others for another cause: -o wide shows the evidence of each\n") {
		t.Errorf("a plan for many causes prints\n%s", got)
	}
	r.Run.DryRun = false
	if got := printed(t, Options{Format: "table"}, r); !strings.Contains(got, "2 of 7 became due only because node worker-5 is fenced\n") {
		t.Errorf("a run prints\n%s", got)
	}
	r.Entries[0].Verdict, r.Entries[0].Address.Fate = judge.Suspected, report.Waiting
	r.Leaked.Due--
	if got := printed(t, Options{Format: "table"}, r); !strings.Contains(got, "1 of 6 became due only because node worker-5 is fenced\n") {
		t.Errorf("what waits is counted\n%s", got)
	}
}

// What could not be listed is not 0.
func TestUnknownIsNotZero(t *testing.T) {
	r := fullReport()
	r.Pools = slices.Repeat(r.Pools[2:], 30)
	r.Leaked = nil
	for _, format := range []string{"table", "wide"} {
		if got := printed(t, Options{Format: format}, r); !strings.Contains(got, "leak count unknown") || !strings.Contains(got, "… and 30 pools, leaked in them: unknown\n") && format != "wide" {
			t.Errorf("%s knows what is leaked:\n%s", format, got)
		}
	}
}

// Without memory, the next run begins the grace periods again.
func TestNoDueTimeWithoutMemory(t *testing.T) {
	for _, memory := range []bool{false, true} {
		r := fullReport()
		r.Run.Memory, r.Run.DryRun = memory, true
		for format, due := range map[string]string{"table": "due in 14m", "wide": "2026-03-01T12:15:00Z (in 14m)"} {
			text := printed(t, Options{Format: format}, r)
			if strings.Contains(text, due) != memory {
				t.Errorf("%s with memory %t:\n%s", format, memory, text)
			}
		}
	}
}

// A script that reads -q sees a refused plan, and what to know about a release: which run it was,
// and how to undo it. It sees nothing else.
func TestQuietPrintsTheBottomLineRefusalsAndHowToUndo(t *testing.T) {
	planned, released, otherStore := refusedReport(), fullReport(), refusedReport()
	planned.Run.DryRun = true
	otherStore.Result.ExitCode = exitUsage
	found := fullReport()
	found.Run.DryRun, found.Summary.Released, found.Result = true, 0, report.Result{}
	found.Findings = []report.Finding{{Kind: report.Unrecorded}, {Kind: report.Duplicate}, {Kind: report.Unrecorded}}
	for _, tt := range []struct {
		name   string
		report report.Report
		want   string // a pattern
	}{
		{"a dry run that is refused", planned, `\A.* leaked addresses: .*\nREFUSED .*\nREFUSED .*\n\z`},
		{"a run that is refused", refusedReport(), `\A.* leaked addresses: .*\nREFUSED .*\nREFUSED .*\nrun 20260301-120000-ABCDEF, .*\n\z`},
		{"a run on another store", otherStore, `\A.* leaked addresses: .*\nREFUSED .*\nREFUSED .*\nrun 20260301-120000-ABCDEF, .*\n\z`},
		{"a dry run with findings", found, `\A.* leaked addresses: .*\nfindings: 1 duplicate, 2 unrecorded\n\z`},
		{"a release", released, `\A.* leaked addresses: .*\nFAILED .*\nrun 20260301-120000-ABCDEF, .*\nundo with: .* --run 20260301-120000-ABCDEF --dry-run=false\n\z`},
	} {
		if got := printed(t, Options{Format: "table", Quiet: true}, tt.report); !regexp.MustCompile(tt.want).MatchString(got) {
			t.Errorf("quiet prints of %s\n%s", tt.name, got)
		}
	}
}

// What changes the meaning of the figures comes before them, in every text for people, and once.
func TestCaveatsComeBeforeTheFigures(t *testing.T) {
	const caveat = "no policy is installed"
	r := fullReport()
	r.Run.Caveats = []string{caveat}
	for _, o := range []Options{{Format: "table"}, {Format: "table", Quiet: true}, {Format: "wide"}} {
		got := printed(t, o, r)
		if !strings.HasPrefix(got, "warning: "+caveat+"\n") || strings.Count(got, caveat) != 1 {
			t.Errorf("%+v prints\n%s", o, got)
		}
	}
	for name, write := range map[string]func(w io.Writer) error{
		"pools":   func(w io.Writer) error { return WritePools(w, Options{Format: "table", Limit: 1}, r) },
		"explain": func(w io.Writer) error { return WriteExplanation(w, "table", 0, report.Explanation{Run: r.Run}) },
		"restore": func(w io.Writer) error {
			return WriteRestore(w, Options{Format: "table"}, report.RestoreReport{Run: r.Run})
		},
	} {
		var text strings.Builder
		if err := write(&text); err != nil || !strings.HasPrefix(text.String(), "warning: "+caveat+"\n") {
			t.Errorf("%s prints %v\n%s", name, err, text.String())
		}
	}
}

// A store cannot colour a text, or make it look like a word of ours.
func TestOnlyOurWordsHaveColours(t *testing.T) {
	r := fullReport()
	r.Entries[0].Owner = ipam.EntryOwner{Pod: "released"}
	r.Entries[0].Note, r.Entries[0].Pool = "failed", "failed"
	text := printed(t, Options{Format: "wide", Color: true}, r)
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "172.18.178.196") {
			continue
		}
		if got, want := escapes.FindAllString(line, -1), []string{dim, reset}; strings.Join(got, "") != strings.Join(want, "") || !strings.Contains(line, dim+"in use"+reset) {
			t.Errorf("colours %q in %q, want in use alone", got, line)
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
