package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

var update = flag.Bool("update", false, "write the golden files anew")

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// emptyReport is a run that found nothing.
func emptyReport() reaper.Report {
	return reaper.Report{
		APIVersion: policy.APIVersion,
		Kind:       "ReapReport",
		Run: reaper.RunInfo{
			ID: "20260301-120000-ABCDEF", StartedAt: noon, FinishedAt: noon.Add(1500 * time.Millisecond),
			DryRun: true, Version: "v1.2.3", Cluster: "https://10.0.0.1:6443",
		},
		Backends: []reaper.BackendReport{},
		Pools:    []reaper.PoolReport{},
		Entries:  []reaper.Entry{},
	}
}

// fullReport has a line for each kind of thing that a report can say.
func fullReport() reaper.Report {
	seen, due := noon.Add(-20*time.Minute), noon.Add(-5*time.Minute)
	later := noon.Add(15 * time.Minute)
	owner := func(pod string) reaper.EntryOwner {
		return reaper.EntryOwner{Namespace: "default", Pod: pod, Sandbox: "1e88fb5dec7c", Interface: "net1"}
	}
	const pools, pool, slice = "whereabouts", "kube-system/172.18.178.192-27", "kube-system/node-a-fd00---48"
	r := emptyReport()
	r.Run.DryRun = false
	r.Summary = reaper.Counts{Entries: 11, InUse: 2, Held: 3, Suspected: 1, Planned: 5, Released: 1, Changed: 2, Failed: 1}
	r.Backends = []reaper.BackendReport{
		{Name: pools, Status: reaper.StatusPartial, Message: "failed releases: 1", Counts: r.Summary},
		{Name: "overlapping", Status: reaper.StatusSkipped, Message: "the store is not installed in this cluster: no overlappingrangeipreservations.whereabouts.cni.cncf.io"},
		{Name: "calico", Status: reaper.StatusFailed, Message: "list blocks: forbidden"},
		{Name: "other", Status: reaper.StatusOK},
	}
	r.Pools = []reaper.PoolReport{
		{Backend: pools, Name: pool, Range: "172.18.178.192/27", Capacity: big.NewInt(30), AllocatedBefore: 10, AllocatedAfter: 9},
		{Backend: pools, Name: slice, Range: "fd00::/48", Capacity: capacityOf48(), AllocatedBefore: 1, AllocatedAfter: 1},
		{Backend: pools, Name: "kube-system/x", Range: "10.0.0.0/8", AllocatedBefore: 0, AllocatedAfter: 0},
	}
	r.Entries = []reaper.Entry{
		{Backend: pools, Pool: pool, Key: "4", IP: "172.18.178.196", Owner: owner("web-0"), Verdict: reaper.InUse, Reason: reaper.PodPresent, Outcome: reaper.Kept},
		{Backend: pools, Pool: pool, Key: "5", IP: "172.18.178.197", Owner: owner("web-1"), Verdict: reaper.InUse, Reason: reaper.AddressInUse,
			Note: "shown by pod default/web-9", Outcome: reaper.Kept,
			Evidence: []reaper.Evidence{{Source: "pod status", Says: "pod default/web-9 shows the address"}}},
		{Backend: pools, Pool: pool, Key: "6", IP: "172.18.178.198", Owner: owner("web-2"), Verdict: reaper.Suspected, Reason: reaper.PodAbsent,
			FirstSeen: &seen, Due: &later, Outcome: reaper.Kept, Evidence: []reaper.Evidence{
				{Source: "list of pods", Says: "the pod does not exist"}, {Source: "policy", Says: "the grace period is 15m"},
			}},
		{Backend: pools, Pool: pool, Key: "7", IP: "172.18.178.199", Owner: owner("web-3"), Verdict: reaper.Orphaned, Reason: reaper.PodAbsent,
			FirstSeen: &seen, Due: &due, Outcome: reaper.Released},
		{Backend: pools, Pool: pool, Key: "8", IP: "172.18.178.200", Owner: owner("web-4"), Verdict: reaper.Orphaned, Reason: reaper.PodAbsent,
			FirstSeen: &seen, Due: &due, Outcome: reaper.Changed, Error: `the allocation changed hands: it is now {"id":"c9"}`},
		{Backend: pools, Pool: pool, Key: "9", IP: "172.18.178.201", Owner: owner("web-5"), Verdict: reaper.Orphaned, Reason: reaper.SandboxReplaced,
			Note: "the pod has 172.18.178.210", FirstSeen: &seen, Due: &due, Outcome: reaper.Returned, Error: "the owner came back: now PodPresent"},
		{Backend: pools, Pool: pool, Key: "10", IP: "172.18.178.202", Owner: owner("web-6"), Verdict: reaper.Orphaned, Reason: reaper.PodReplaced,
			FirstSeen: &seen, Due: &due, Outcome: reaper.Failed, Error: "not decided: etcdserver: request timed out"},
		{Backend: pools, Pool: pool, Key: "11", IP: "172.18.178.203", Owner: owner("web-7"), Verdict: reaper.Orphaned, Reason: reaper.PodFinished,
			FirstSeen: &seen, Due: &due, Outcome: reaper.Planned},
		{Backend: pools, Pool: pool, Key: "abc", Owner: reaper.EntryOwner{}, Verdict: reaper.Held, Reason: reaper.Unreadable,
			Note: `offset "abc" is not a plain decimal number`, Outcome: reaper.Kept},
		{Backend: pools, Pool: pool, Key: "12", IP: "172.18.178.204", Owner: reaper.EntryOwner{Sandbox: "8cb063d9cc07"}, Verdict: reaper.Held,
			Reason: reaper.OwnerUnknown, Note: "it names a sandbox only", Outcome: reaper.Kept},
		{Backend: pools, Pool: slice, Key: "18446744073709551621", IP: "fd00:0:0:1::5", Owner: reaper.EntryOwner{Namespace: "db", Pod: "pg-0", Node: "node-a"},
			Verdict: reaper.Held, Reason: reaper.RuleHold, Outcome: reaper.Kept},
	}
	r.Warnings = []string{"limits are ignored: limits.maxReleases: the plan releases 5 of 11 allocations, allowed is 2"}
	return r
}

// capacityOf48 is beyond 64 bits.
func capacityOf48() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), 80)
	return n.Sub(n, big.NewInt(2))
}

// hostileReport has text with which a user who may write pool objects could deceive the
// reader of a report.
func hostileReport() reaper.Report {
	const hostile = "a|b\\|c\x1b[31mred\x1b[0m\ttab\nline\r\u202egpj\u2028\x7f\u0085\x00\xff<img src=x>[link](http://x)`code`*bold*_it_~s~#1 &amp; end"
	r := emptyReport()
	r.Summary = reaper.Counts{Entries: 2, Held: 2}
	r.Backends = []reaper.BackendReport{{Name: "whereabouts", Status: reaper.StatusPartial, Message: hostile, Counts: r.Summary}}
	r.Pools = []reaper.PoolReport{{Backend: "whereabouts", Name: hostile, Range: "10.0.0.0/24", Capacity: big.NewInt(254), AllocatedBefore: 2, AllocatedAfter: 2}}
	r.Entries = []reaper.Entry{
		{Backend: "whereabouts", Pool: hostile, Key: hostile, Owner: reaper.EntryOwner{Namespace: hostile, Pod: hostile, Sandbox: hostile, Interface: hostile, Node: hostile},
			Verdict: reaper.Held, Reason: reaper.Unreadable, Note: hostile, Outcome: reaper.Kept, Error: hostile},
		{Backend: "whereabouts", Pool: "p", Key: "1", IP: "10.0.0.1", Owner: reaper.EntryOwner{Pod: "| --- |\n| x |"},
			Verdict: reaper.Held, Reason: reaper.OwnerUnknown, Note: "---\nx: y\n# z", Outcome: reaper.Kept},
	}
	r.Warnings = []string{hostile}
	return r
}

func TestReportFormats(t *testing.T) {
	for name, report := range map[string]reaper.Report{
		"empty": emptyReport(), "full": fullReport(), "hostile": hostileReport(),
	} {
		for _, format := range formats {
			t.Run(name+" as "+format.name, func(t *testing.T) {
				var got bytes.Buffer
				if err := format.print(&got, viewOf(report)); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join("testdata", name+"."+format.name)
				if *update {
					if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got.String()); diff != "" {
					t.Errorf("%s differs; if it should, run the test with -update (-want +got):\n%s", file, diff)
				}
			})
		}
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
	if err := printJSON(&asJSON, viewOf(report)); err != nil {
		t.Fatalf("%v", err)
	}
	if err := printYAML(&asYAML, viewOf(report)); err != nil {
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
	for _, format := range formats {
		var out bytes.Buffer
		if err := format.print(&out, viewOf(fullReport())); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "1208925819614629174706174") {
			t.Errorf("%s does not say 1208925819614629174706174", format.name)
		}
	}
}

// A table is as wide as its widest cell in each row. A page and a table for people do not
// grow with one name.
func TestLongCellIsCutOff(t *testing.T) {
	r := fullReport()
	r.Entries[0].Owner.Pod = strings.Repeat("é", 1<<20)
	for _, name := range []string{"table", "wide", "markdown"} {
		var out bytes.Buffer
		if err := Write(&out, name, true, r); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); len(text) > 64<<10 || !strings.Contains(text, "éé…") {
			t.Errorf("%s has %d bytes, or a name that is not cut off", name, len(text))
		}
	}
}

// Users name the formats in scripts.
func TestNoFormatIsLost(t *testing.T) {
	for _, name := range []string{"json", "markdown", "table", "wide", "yaml"} {
		if !slices.Contains(Formats(), name) {
			t.Errorf("formats = %v, without %s", Formats(), name)
		}
	}
}

func TestFormatListIsForASentence(t *testing.T) {
	if got := FormatList(); !strings.HasPrefix(got, "table, wide, ") || !strings.HasSuffix(got, " or "+formats[len(formats)-1].name) {
		t.Errorf("FormatList() = %s", got)
	}
}

func TestReadmeNamesEveryFormat(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Formats() {
		if !regexp.MustCompile("`(-o )?" + name + "`").Match(readme) {
			t.Errorf("README.md does not name the output format `%s`", name)
		}
	}
}

// Without --all, only the wide format has the allocations that are in use.
func TestAllocationsInUseAreLeftOut(t *testing.T) {
	const inUse = "172.18.178.196"
	for _, format := range formats {
		for _, all := range []bool{false, true} {
			var out bytes.Buffer
			if err := Write(&out, format.name, all, fullReport()); err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Contains(out.String(), inUse), all || format.name == "wide"; got != want {
				t.Errorf("%s with all %t: allocation in use printed: %t, want %t", format.name, all, got, want)
			}
		}
	}
}
