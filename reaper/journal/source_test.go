package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// A source has a run for each of its parts, the latest first.
type source []journal.StoredPart

func (source) Where() string { return "here" }

func (s source) List(context.Context) (runs []journal.PastRun, warnings []string, err error) {
	for _, p := range s {
		runs = append(runs, journal.PastRun{Run: p.Part.Run})
	}
	if len(s) == 0 {
		warnings = []string{"the journal of run x is damaged"}
	}
	return runs, warnings, nil
}

func (s source) Parts(_ context.Context, run string) (parts []journal.StoredPart, err error) {
	for _, p := range s {
		if p.Part.Run.ID == run {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// An ID is found in any case, and the error for an unknown one names those that exist.
func TestFindNamesTheRunsThatHaveAJournal(t *testing.T) {
	var s source
	_, err := journal.Find(t.Context(), s, "RUN-00")
	if !errors.Is(err, journal.ErrNone) || !strings.HasSuffix(err.Error(), `of run "RUN-00" in here: no run has a journal there; the journal of run x is damaged`) {
		t.Errorf("Find = %v, want that there is none but a damaged one", err)
	}
	for n := range 12 {
		parts, err := journal.Split(journal.Run{ID: fmt.Sprintf("RUN-%02d", n)}, 1, []ipam.Record{record(fmt.Sprint(n), `{}`)})
		if err != nil {
			t.Fatal(err)
		}
		s = append(s, journal.StoredPart{Part: parts[0]})
	}
	for _, id := range []string{"RUN-03", "run-03"} {
		if got, err := journal.Find(t.Context(), s, id); err != nil || got.Run.ID != "RUN-03" || keys(got) != "3" {
			t.Errorf("Find(%s) = %v, %v, want the journal of RUN-03", id, got, err)
		}
	}
	_, err = journal.Find(t.Context(), s, "RUN-99")
	if want := "12, the latest are RUN-00, RUN-01, RUN-02, RUN-03, RUN-04"; !errors.Is(err, journal.ErrNone) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("Find = %v, want %q", err, want)
	}
}
