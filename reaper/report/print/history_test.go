package print

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// histories are a list of runs, and one run with its allocations. Text in a journal comes
// from anyone who can write ConfigMaps of the namespace.
func histories() map[string]report.History {
	night := journal.Run{
		ID: "20260301-020000-ABCDEF", StartedAt: time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC), Version: "v1",
		Cluster: "https://cluster", By: "pod ip-reaper/ip-reaper-1",
	}
	list, one, none := report.NewHistory("https://cluster", "ip-reaper"), report.NewHistory("https://cluster", "ip-reaper"), report.NewHistory("https://cluster", "ours")
	list.Runs = []journal.PastRun{
		journal.NewPastRun(night, []journal.PoolRecord{{Backend: "calico", Pool: "10.1.0.0/26", Recorded: 7}, {Backend: "calico", Pool: "10.1.0.64/26", Recorded: 1}, {Backend: "whereabouts", Pool: "kube-system/lan", Recorded: 1131}, {Backend: "overlapping", Pool: "kube-system/10.0.0.1", Recorded: 1, Elsewhere: true},
			{Backend: "overlapping", Pool: "kube-system/10.0.0.2", Recorded: 1}, {Backend: "overlapping", Pool: "kube-system/10.0.0.3", Recorded: 1}, {Backend: "overlapping", Pool: "kube-system/10.0.0.4", Recorded: 1}, {Backend: "overlapping", Pool: "kube-system/10.0.0.5", Recorded: 1}}),
		journal.NewPastRun(journal.Run{ID: "20260228-120000-GHIJKL", StartedAt: night.StartedAt.Add(-14 * time.Hour), By: "user \x1b[31m\nadmin", Version: "v0"},
			[]journal.PoolRecord{{Backend: "whereabouts", Pool: "kube-system/wan", Recorded: 2}}),
	}
	list.Runs[0].Addresses, list.Runs[1].Addresses = 1139, 2
	list.Schedules = []report.Schedule{
		{Name: "ip-reaper/ip-reaper", Cron: "7 * * * *", TimeZone: "Etc/UTC", LastRun: &night.StartedAt, Next: new(night.StartedAt.Add(time.Hour))},
		{Name: "ip-reaper/\x1b[31m", Cron: "0 0 * * *", Suspended: true, DryRun: true},
	}
	at := func(minutes int) journal.Run {
		began := night.StartedAt.Add(time.Duration(minutes) * time.Minute)
		return journal.Run{ID: began.Format("20060102-150405-") + "QRSTUV", StartedAt: began}
	}
	ended := func(run journal.Run, r journal.Result, code int) journal.PastRun {
		r.ExitCode, r.Released = &code, new(int)
		past := journal.NewPastRun(run, []journal.PoolRecord{})
		past.Result = &r
		return past
	}
	ends, failed := report.NewHistory("https://cluster", "ip-reaper"), report.NewHistory("https://cluster", "ip-reaper")
	refused := ended(at(60), journal.Result{Due: 144, Error: "limits.maxReleases: the plan would release 144 of 970 allocations, more than the allowed 100; nothing was released"}, 4)
	ends.Runs = []journal.PastRun{
		{Run: at(75), Pools: []journal.PoolRecord{}, Result: &journal.Result{Due: 12}},
		refused, ended(at(45), journal.Result{Error: "census: list pods: \x1b[31m\nforbidden"}, 1), ended(at(30), journal.Result{DryRun: true, Due: 3}, 0), list.Runs[0], list.Runs[1],
	}
	ends.Runs[4].Result = &journal.Result{Due: 1143, Released: new(1140), ExitCode: new(int)}
	back := journal.RestoreResult{ID: at(90).ID, Of: list.Runs[0].ID, Restored: 6, Present: 1, Taken: 2}
	restored := ended(at(90), journal.Result{Selection: "pool kube-system/lan, address 10.0.0.1", Restore: &back}, 3)
	restored.By = "user admin"
	ends.Runs[4].Restores = []journal.RestoreResult{back, {ID: at(91).ID, Of: list.Runs[0].ID, Present: 6}}
	stopped := ended(at(80), journal.Result{
		Due: 139, NotBegun: 132, Selection: "namespace shop", Overrides: "--grace-period=1m0s", Error: "interrupted: 0 of 139 addresses released",
	}, 130)
	ends.Runs = append([]journal.PastRun{restored, stopped}, ends.Runs...)
	refused.Entries, restored.Entries = []journal.RecordedEntry{}, []journal.RecordedEntry{}
	failed.Runs = []journal.PastRun{refused}
	list.Warnings = []string{"parts of journals could not be read, and are not counted: settings (damaged)"}
	_ = one.AddJournal(journal.Journal{Run: night, Records: []ipam.Record{
		{Backend: "whereabouts", Pool: "kube-system/lan", Key: "1", IP: "10.0.0.1", Owner: ipam.EntryOwner{Namespace: "shop", Pod: "web-0", Node: "node-a", Interface: "net1"}, Stored: []byte(`{"id":"c1","podref":"shop/web-0"}`)},
		{Backend: "whereabouts", Pool: "kube-system/lan", Key: "1", IP: "10.0.0.1", Owner: ipam.EntryOwner{Namespace: "shop", Pod: "web-0"}, Stored: []byte(`{"id":"c1","podref":"shop/web-0"}`)},
		{Backend: "calico", Pool: "empty handles", Key: "k8s-pod-network.abc", Stored: []byte(`{"name":"k8s-pod-network.abc"}`)},
	}}, journal.ErrDamaged)
	undone := report.NewHistory("https://cluster", "ip-reaper")
	undone.Runs = []journal.PastRun{restored}
	people := report.NewHistory("https://cluster", "ip-reaper")
	people.Runs = list.Runs[1:]
	node := report.NewHistory("", "")
	node.Node, node.StateDir = "worker-1", "/var/lib/ip-reaper"
	return map[string]report.History{"history_people": people, "history_restore": undone, "history_node": node, "history_ends": ends, "history_refused": failed, "history": list, "history_run": one, "history_none": none}
}

// Users read and script against these texts.
func TestHistoryFormats(t *testing.T) {
	by := report.RunInfo{Origin: report.Origin{Program: "kubectl ip-reaper", Context: "my-cluster", StateNamespace: "ip-reaper"}}
	for name, formats := range map[string][]string{
		"history": {"table", "json", "name"}, "history_run": {"table", "wide", "json", "name"}, "history_none": {"table", "json"},
		"history_ends": {"table", "json", "name"}, "history_refused": {"table", "name"}, "history_restore": {"table"}, "history_node": {"table"}, "history_people": {"table"},
	} {
		history := histories()[name]
		by.Node, by.ClientFlags = history.Node, map[string][]string{"history_people": {"--as", "jane doe"}}[name]
		for _, format := range formats {
			t.Run(name+" as "+format, func(t *testing.T) {
				var got bytes.Buffer
				if err := WriteHistory(&got, Options{Format: format}, history, by); err != nil {
					t.Fatal(err)
				}
				sameAsGolden(t, name+"."+format, got.String())
			})
		}
	}
}

// Promise 10: what restore reads in a printed journal is what the run has recorded, whatever texts it
// has, and what history could not read.
func TestPrintedJournalIsReadAgain(t *testing.T) {
	run := journal.Run{ID: "20260301-020000-ABCDEF", StartedAt: noon, Version: "v1", Cluster: "https://a?b=1&c=<2>", ClusterUID: "6f0c1a52", By: "user a"}
	var records []ipam.Record
	for i, text := range hostileTexts {
		text = strings.ToValidUTF8(text, "\ufffd") // as in a journal, which is JSON
		stored, err := json.Marshal(map[string]any{text: []any{text, nil, json.Number("18446744073709551616"), json.Number("1E400")}})
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, ipam.Record{
			Backend: "whereabouts", Pool: "p" + text, Key: strconv.Itoa(i), IP: "10.0.0.1", Node: text, Boot: text, Mirror: true,
			Owner: ipam.EntryOwner{Namespace: text, Pod: text, Sandbox: text, Interface: text, Node: text}, Stored: stored,
		})
	}
	records[3].Stored = []byte(`"` + strings.Repeat("<", journal.MaxPart-4<<10) + `"`) // longer than a part, once it is printed
	for _, writes := range [][]int{{len(records)}, {2, 1, len(records) - 3}} {
		for _, damage := range []error{nil, fmt.Errorf("%w: write 4 lacks 1 of 2 parts", journal.ErrDamaged)} {
			h := report.NewHistory("https://cluster", "ip-reaper")
			_ = h.AddJournal(journal.Journal{Run: run, Records: records, Writes: writes}, damage)
			var text bytes.Buffer
			if err := WriteHistory(&text, Options{Format: "json"}, h, report.RunInfo{}); err != nil {
				t.Fatal(err)
			}
			got, err := journal.Read("f", &text)
			if errors.Is(err, journal.ErrDamaged) != (damage != nil) || err != nil && !strings.Contains(err.Error(), damage.Error()) {
				t.Errorf("Read = %v, want %v", err, damage)
			}
			want := journal.Journal{Run: run, Records: records, Writes: writes}
			if diff := cmp.Diff(want, got, cmp.Transformer("value", valueOf)); diff != "" {
				t.Errorf("%d writes (-want +got):\n%s", len(writes), diff)
			}
		}
	}
}

// valueOf decodes JSON.
func valueOf(text json.RawMessage) (value any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&value) // a wrong text has no value
	return value
}
