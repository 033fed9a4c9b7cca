package print

import (
	"bytes"
	"testing"
	"time"

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
		journal.NewPastRun(night, []journal.PoolRecord{{Backend: "calico", Pool: "10.1.0.0/26", Recorded: 7}, {Backend: "calico", Pool: "10.1.0.64/26", Recorded: 1}, {Backend: "whereabouts", Pool: "kube-system/lan", Recorded: 1131}, {Backend: "overlapping", Pool: "kube-system/10.0.0.1", Recorded: 1},
			{Backend: "overlapping", Pool: "kube-system/10.0.0.2", Recorded: 1}, {Backend: "overlapping", Pool: "kube-system/10.0.0.3", Recorded: 1}, {Backend: "overlapping", Pool: "kube-system/10.0.0.4", Recorded: 1}}),
		journal.NewPastRun(journal.Run{ID: "20260228-120000-GHIJKL", StartedAt: night.StartedAt.Add(-14 * time.Hour), By: "user \x1b[31m\nadmin", Version: "v0"},
			[]journal.PoolRecord{{Backend: "whereabouts", Pool: "kube-system/wan", Recorded: 2}}),
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
	refused := ended(at(60), journal.Result{Due: 144, Error: "limits.maxReleases: the plan releases 144 of 970 allocations (allowed: 100); nothing was released"}, 4)
	ends.Runs = []journal.PastRun{
		{Run: at(75), Pools: []journal.PoolRecord{}, Result: &journal.Result{Due: 12}},
		refused, ended(at(45), journal.Result{Error: "census: list pods: \x1b[31m\nforbidden"}, 1), ended(at(30), journal.Result{DryRun: true, Due: 3}, 0), list.Runs[0], list.Runs[1],
	}
	ends.Runs[4].Result = &journal.Result{Due: 1143, Released: new(1140), ExitCode: new(int)}
	refused.Entries = []journal.RecordedEntry{}
	failed.Runs = []journal.PastRun{refused}
	list.Warnings = []string{"parts of journals could not be read, and are not counted: settings (damaged)"}
	_ = one.AddJournal(journal.Journal{Run: night, Records: []ipam.Record{
		{Backend: "whereabouts", Pool: "kube-system/lan", Key: "1", IP: "10.0.0.1", Owner: ipam.EntryOwner{Namespace: "shop", Pod: "web-0", Node: "node-a", Interface: "net1"}},
		{Backend: "whereabouts", Pool: "kube-system/lan", Key: "1", IP: "10.0.0.1", Owner: ipam.EntryOwner{Namespace: "shop", Pod: "web-0"}},
		{Backend: "calico", Pool: "empty handles", Key: "k8s-pod-network.abc"},
	}}, journal.ErrDamaged)
	return map[string]report.History{"history_ends": ends, "history_refused": failed, "history": list, "history_run": one, "history_none": none}
}

// Users read and script against these texts.
func TestHistoryFormats(t *testing.T) {
	by := report.RunInfo{Program: "kubectl ip-reaper", Context: "my-cluster", StateNamespace: "ip-reaper"}
	for name, formats := range map[string][]string{
		"history": {"table", "json", "name"}, "history_run": {"table", "wide", "json", "name"}, "history_none": {"table", "json"},
		"history_ends": {"table", "json", "name"}, "history_refused": {"table", "name"},
	} {
		history := histories()[name]
		for _, format := range formats {
			t.Run(name+" as "+format, func(t *testing.T) {
				var got bytes.Buffer
				if err := WriteHistory(&got, Options{Format: format, NoTrunc: true}, history, by); err != nil {
					t.Fatal(err)
				}
				sameAsGolden(t, name+"."+format, got.String())
			})
		}
	}
}
