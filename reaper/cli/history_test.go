package cli

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// pastJournals are the journals of runs, the latest first.
type pastJournals struct {
	storedJournals
	runs    []journal.Run
	records map[string]journal.Journal // what has records
	err     error
}

func (p pastJournals) List(context.Context) (all []journal.PastRun, warnings []string, err error) {
	for _, run := range p.runs {
		all = append(all, journal.NewPastRun(run, nil))
	}
	return all, nil, p.err
}

func (p pastJournals) Read(_ context.Context, id string) (journal.Journal, error) {
	if id == "damaged" {
		return journal.Journal{}, journal.ErrDamaged
	}
	if read, ok := p.records[id]; ok {
		return read, nil
	}
	if i := slices.IndexFunc(p.runs, func(run journal.Run) bool { return run.ID == id }); i >= 0 {
		return journal.Journal{Run: p.runs[i]}, nil
	}
	return journal.Journal{}, journal.ErrNone
}

// A pastLedger is one that is stored.
type pastLedger struct {
	ledger.Store
	stored ledger.Ledger
}

func (p pastLedger) Load(context.Context) (ledger.Ledger, error) { return p.stored, nil }

// Promise 10. What history shows as the latest run is what restore puts back, also if a later run
// released nothing and so has no journal.
func TestLatestRunIsTheSameForHistoryAndRestore(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	first, second := journal.Run{ID: "first", StartedAt: at}, journal.Run{ID: "second", StartedAt: at.Add(time.Hour)}
	noted := []ledger.Run{{ID: "second", Began: second.StartedAt.Unix(), Ended: true}, {ID: "third", Began: at.Add(2 * time.Hour).Unix(), Ended: true}}
	for _, tt := range []struct {
		name             string
		journals         []journal.Run
		history, restore string
	}{
		{"two journals", []journal.Run{second, first}, "second", "second"},
		{"no journal", nil, "third", ""},
	} {
		journals := pastJournals{runs: tt.journals}
		conn := connection{Options: reaper.Options{Ledgers: pastLedger{stored: ledger.Ledger{Runs: slices.Clone(noted)}}}, journals: journals}
		found := report.NewHistory("", "")
		if _, err := readHistory(t.Context(), conn, latest, &found); err != nil {
			t.Fatal(err)
		}
		var shown []string
		for _, run := range found.Runs {
			shown = append(shown, run.ID)
		}
		if diff := cmp.Diff([]string{tt.history}, shown); diff != "" {
			t.Errorf("%s: history (-want +got):\n%s", tt.name, diff)
		}
		if back, _ := readRun(t.Context(), journals, latest); back.Run.ID != tt.restore {
			t.Errorf("%s: restore takes run %q, want %q", tt.name, back.Run.ID, tt.restore)
		}
	}
}

// Within a second, the order is that of the ledger, which knows no more than the second.
func TestRunsOfOneSecondAreInTheirOrder(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	var journals []journal.PastRun
	for _, id := range []string{"third", "first", "forgotten"} {
		journals = append(journals, journal.NewPastRun(journal.Run{ID: id, StartedAt: at.Add(time.Duration(len(id)) * 100 * time.Millisecond)}, nil))
	}
	noted := []ledger.Run{{ID: "first", Began: at.Unix()}, {ID: "second", Began: at.Unix()}, {ID: "third", Began: at.Unix()}, {ID: "fourth", Began: at.Unix()}, {ID: "later", Began: at.Unix() + 1}}
	var got []string
	for _, run := range withResults(journals, noted) {
		got = append(got, run.ID)
	}
	if diff := cmp.Diff([]string{"later", "fourth", "third", "second", "first", "forgotten"}, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

// An address that nothing uses has a history: the latest run that recorded it, and the restores of that
// run. A journal that cannot be read is a warning, and does not hide an earlier one.
func TestExplainNamesTheLatestRelease(t *testing.T) {
	of := func(id, ip string) journal.Journal {
		owner := ipam.EntryOwner{Namespace: "shop", Pod: "web"}
		return journal.Journal{Run: journal.Run{ID: id}, Records: []ipam.Record{{Backend: "whereabouts", Pool: "lan", Key: "1", IP: ip, Owner: owner}, {Key: "2", IP: "10.0.0.9"}}}
	}
	records := map[string]journal.Journal{"third": of("third", "10.0.0.3"), "second": of("second", "10.0.0.1"), "first": of("first", "10.0.0.1")}
	noted := []ledger.Run{{ID: "second", Ended: true}, {ID: "back", RestoreOf: "second", Restore: ledger.Restore{Restored: 6}}, {ID: "other", RestoreOf: "third"}}
	pod := report.Shown{Kind: "pod", Name: "web"}
	for _, tt := range []struct {
		name     string
		change   func(*connection, *report.Explanation)
		want     string // the run
		restores int
		warnings int
	}{
		{"free", nil, "second", 1, 0},
		{"leaked", func(_ *connection, x *report.Explanation) { x.Found = make([]report.Explained, 1) }, "second", 1, 0},
		{"a pod shows it", func(_ *connection, x *report.Explanation) { x.Claims = []report.Shown{pod} }, "", 0, 0},
		{"in use", func(_ *connection, x *report.Explanation) {
			x.Found = []report.Explained{{Entry: report.Entry{Verdict: judge.InUse}}}
		}, "", 0, 0},
		{"no run has released it", func(_ *connection, x *report.Explanation) { x.Question.Address = "10.0.0.2" }, "", 0, 0},
		{"a pod that is gone", func(_ *connection, x *report.Explanation) {
			x.Question = report.Question{Namespace: "shop", Pod: "web"}
		}, "third", 1, 0},
		{"a pod of that name in another namespace", func(_ *connection, x *report.Explanation) {
			x.Question = report.Question{Namespace: "cart", Pod: "web"}
		}, "", 0, 0},
		{"a bare name", func(_ *connection, x *report.Explanation) { x.Question = report.Question{Name: "web"} }, "third", 1, 0},
		{"a pod that exists", func(_ *connection, x *report.Explanation) {
			x.Question, x.Asking = report.Question{Namespace: "shop", Pod: "web"}, make([]report.Asking, 1)
		}, "", 0, 0},
		{"a node", func(_ *connection, x *report.Explanation) { x.Question = report.Question{Node: "web"} }, "", 0, 0},
		{"files", func(c *connection, _ *report.Explanation) { c.journals = nil }, "", 0, 1},
		{"leaked in files", func(c *connection, x *report.Explanation) { c.journals, x.Found = nil, make([]report.Explained, 1) }, "", 0, 0},
		{"a journal cannot be read", func(c *connection, _ *report.Explanation) {
			c.journals = pastJournals{runs: []journal.Run{{ID: "damaged"}, {ID: "first"}}, records: records}
		}, "first", 0, 1},
		{"it may not read them", func(c *connection, _ *report.Explanation) { c.journals = pastJournals{err: errors.New("forbidden")} }, "", 0, 1},
	} {
		journals := pastJournals{runs: []journal.Run{{ID: "third"}, {ID: "second"}, {ID: "first"}}, records: records}
		conn := connection{Options: reaper.Options{Timeout: time.Minute, Ledgers: pastLedger{stored: ledger.Ledger{Runs: noted}}}, journals: journals}
		x := report.Explanation{Question: report.Question{Address: "10.0.0.1"}}
		if tt.change != nil {
			tt.change(&conn, &x)
		}
		addLastRelease(t.Context(), conn, &x)
		got, restores := "", 0
		if x.LastRelease != nil {
			got, restores = x.LastRelease.ID, len(x.LastRelease.Restores)
			if len(x.LastRelease.Entries) != 1 {
				t.Errorf("%s: it has %+v, want one allocation", tt.name, x.LastRelease.Entries)
			}
		}
		if got != tt.want || restores != tt.restores || len(x.Warnings) != tt.warnings {
			t.Errorf("%s: run %q with %d restores, warnings %q; want %q, %d and %d", tt.name, got, restores, x.Warnings, tt.want, tt.restores, tt.warnings)
		}
	}
}
