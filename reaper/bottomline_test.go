package reaper

import (
	"testing"
)

// The bottom line says how much is leaked, and never that nothing is if that is not known.
func TestBottomLine(t *testing.T) {
	leaked := &Leaked{Total: 1173, Due: 1131, Held: 42, HeldBy: []ReasonCount{{NodeUnreachable, 31}, {RuleHold, 11}}}
	refused := Result{Refused: []Refusal{{Limit: "limits.maxReleases"}}}
	ok, failed, skipped := BackendReport{Name: "calico", Status: StatusOK}, BackendReport{Name: "whereabouts"}, BackendReport{Name: "overlapping", Status: StatusSkipped}
	blind := []Entry{{Reason: NoCensus}}
	for _, tt := range []struct {
		name   string
		report Report
		want   string
	}{
		{"a dry run", Report{Run: RunInfo{DryRun: true}, Leaked: leaked}, "1,173 leaked: 1,131 due now, 0 waiting, 42 held (31 node unreachable, 11 rule hold)"},
		{"a run", Report{Leaked: &Leaked{Total: 12, Released: 9, Due: 1, Waiting: 2}}, "12 leaked: 9 released, 1 still due, 2 waiting, 0 held"},
		{"nothing", Report{Run: RunInfo{DryRun: true}, Leaked: &Leaked{}}, "0 leaked: 0 due now, 0 waiting, 0 held"},
		{"a refused dry run", Report{Run: RunInfo{DryRun: true}, Leaked: leaked, Result: refused}, "1,173 leaked: 1,131 due now but refused, 0 waiting, 42 held (31 node unreachable, 11 rule hold)"},
		{"a refused run", Report{Leaked: &Leaked{Total: 5, Due: 5}, Result: refused}, "5 leaked: 0 released, 5 still due but refused, 0 waiting, 0 held"},
		{"a store failed", Report{Run: RunInfo{DryRun: true}, Leaked: &Leaked{}, Backends: []BackendReport{ok, failed, skipped}}, "0 leaked: 0 due now, 0 waiting, 0 held; unknown in whereabouts"},
		{"no pods", Report{Backends: []BackendReport{ok}, Entries: blind}, "unknown how much is leaked: the pods are not known"},
		{"all stores failed", Report{Backends: []BackendReport{failed, skipped}}, "unknown how much is leaked: no store could be listed"},
		{"no store", Report{Backends: []BackendReport{skipped}}, "unknown how much is leaked: no store was listed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.report.BottomLine(); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

// The progress does not count a store as listed that was not.
func TestListedStoresAreThoseThatWereListed(t *testing.T) {
	ok, partial := Listing{Backend: "a", Status: StatusOK}, Listing{Backend: "b", Status: StatusPartial}
	failed, skipped := Listing{Backend: "c", Message: "list blocks: forbidden"}, Listing{Backend: "d", Status: StatusSkipped, Message: "disabled"}
	for want, listings := range map[string][]Listing{
		"1 store":  {ok},
		"2 stores": {ok, partial},
		"2 of 4 stores (c failed: list blocks: forbidden; d skipped)": {ok, partial, failed, skipped},
		"0 of 1 store (c failed: list blocks: forbidden)":             {failed},
		"0 stores": nil,
	} {
		if got := (Inventory{Listings: listings}).Stores(); got != want {
			t.Errorf("listed %s, want %s", got, want)
		}
	}
}
