package cli

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// pastJournals are the journals of runs, the latest first.
type pastJournals struct {
	storedJournals
	runs []journal.Run
}

func (p pastJournals) List(context.Context) (all []journal.PastRun, warnings []string, err error) {
	for _, run := range p.runs {
		all = append(all, journal.NewPastRun(run, nil))
	}
	return all, nil, nil
}

func (p pastJournals) Read(_ context.Context, id string) (journal.Journal, error) {
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
