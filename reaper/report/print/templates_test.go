package print

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

func TestTemplatesApplyToTheJSON(t *testing.T) {
	for _, tt := range []struct{ format, want string }{
		{"jsonpath={.leaked.total}", "6"},
		{`jsonpath={range .entries[?(@.outcome=="released")]}{.ip}{"\t"}{.owner.pod}{"\n"}{end}`, "172.18.178.199\tweb-3\n"},
		{"jsonpath={.entries[0].nothing}", ""},
		{"jsonpath={.pools[?(@.allocatedBefore>5)].name}", "kube-system/172.18.178.192-27"},
		{"jsonpath={.run.policy}", `{"file":"policy.yaml","gracePeriod":"15m","minAge":"5m"}`},
	} {
		t.Run(tt.format, func(t *testing.T) {
			got := printed(t, Options{Format: tt.format}, fullReport())
			if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(tt.want), " ") || strings.Count(got, "\n") != strings.Count(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestWrongTemplateIsRefused(t *testing.T) {
	for format, want := range map[string]string{
		"xml":          `unknown format "xml"`,
		"":             `unknown format ""`,
		"table=x":      `unknown format "table=x"`,
		"jsonpath":     "jsonpath: it needs a template",
		"jsonpath={.a": "jsonpath: unclosed action",
	} {
		if err := Check(format); err == nil || err.Error() != want {
			t.Errorf("Check(%q) = %v, want %s", format, err, want)
		}
	}
}

// A mistake that shows only with data is an error, not a panic.
func TestTemplateThatFailsIsAnError(t *testing.T) {
	for _, format := range []string{"jsonpath={.entries[99].ip}", `jsonpath={.entries[?(@.owner>3)].ip}`, "jsonpath={end}"} {
		if err := Write(&bytes.Buffer{}, Options{Format: format}, fullReport()); err == nil {
			t.Errorf("%s: no error", format)
		}
	}
}

// No template makes the program panic after it has released something.
func FuzzTemplates(f *testing.F) {
	for _, text := range []string{"{.entries[*].ip}", "{.a[?(@.b==1)]}", "{range .entries[*]}{.ip}{end}", "{..ip}", "{.entries[-1:0:1]}", `{"\n"}`, "{$.leaked['total','due']}"} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		_ = Write(&bytes.Buffer{}, Options{Format: "jsonpath=" + text}, fullReport())
		_ = WriteRestore(&bytes.Buffer{}, Options{Format: "jsonpath=" + text}, report.RestoreReport{})
	})
}

// Every format is for a restore too. In a table, an address is one row.
func TestRestoreHasEveryFormat(t *testing.T) {
	web := ipam.EntryOwner{Namespace: "shop", Pod: "web"}
	r := report.RestoreReport{
		Kind: "RestoreReport", Journal: journal.Run{ID: "20260301-120000-ABCDEF"},
		Run:     report.RunInfo{Selection: judge.Selection{Pools: []string{"edge"}}},
		Summary: report.RestoreCounts{Records: 4, Restored: 2, Taken: 2},
		Entries: []report.RestoreEntry{
			{Backend: "calico", Pool: "p", Key: "2", IP: "10.0.0.10", Outcome: report.Restored},
			{Backend: "calico", Pool: "p", Key: "1", IP: "10.0.0.9", Outcome: report.Restored},
			{Backend: "whereabouts", Pool: "p", Key: "3", IP: "10.0.0.11", Owner: web, Outcome: report.Taken, Error: "pod shop/new has it"},
			{Backend: "overlapping", Pool: "kube-system/10.0.0.11", Key: "10.0.0.11", IP: "10.0.0.11", Owner: web, Outcome: report.Taken, Error: "pod shop/new has it"},
		},
	}
	const sentence = "put back 2 of 4 allocations (3 addresses) of run 20260301-120000-ABCDEF and of pool edge (0 already there, 2 taken, 0 failed)\n"
	for format, want := range map[string]string{
		"table": sentence + `files, policy defaults

IP         BACKEND                   POOL  POD       STATE     NOTE
10.0.0.10  calico                    p               restored
10.0.0.9   calico                    p               restored
10.0.0.11  whereabouts, overlapping  p     shop/web  taken     pod shop/new has it
`,
		"wide": "10.0.0.11  overlapping  kube-system/10.0.0.11  shop/web  taken     pod shop/new has it\n", "json": `"kind": "RestoreReport"`, "yaml": "kind: RestoreReport",
		"name":                      "10.0.0.9\n10.0.0.10\n",
		"jsonpath={.summary.taken}": "2",
	} {
		var out bytes.Buffer
		if err := WriteRestore(&out, Options{Format: format}, r); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: error %v, and %q is not in\n%s", format, err, want, out.String())
		}
	}
}
