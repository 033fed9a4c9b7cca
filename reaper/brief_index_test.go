package reaper

import (
	"slices"
	"testing"
)

// A protector waits for the decisions on what it protects, by their indices. So brief keeps
// those, and the indices stay right when others are left out.
func TestBriefKeepsWhatAReleaseWaitsFor(t *testing.T) {
	plain := &Ruling{Verdict: InUse, Evidence: []Evidence{{}}}
	orphan := &Ruling{Verdict: Orphaned}
	named := func(key string) *Allocation { return &Allocation{Key: key} }
	decisions := []Decision{
		{Allocation: named("in use"), Ruling: plain},
		{Allocation: named("protected"), Ruling: orphan},
		{Allocation: named("in use too"), Ruling: plain},
		{Allocation: named("awaited"), Ruling: plain},
		{Allocation: named("protector"), Ruling: &Ruling{Verdict: Orphaned, After: []int{1, 3}}},
		{Allocation: &Allocation{Key: "begun", Interrupted: true}, Ruling: plain},
	}
	selected := []bool{true, false, false, true, true, true}
	kept, keptSelected, left := Brief(decisions, selected)
	var keys []string
	for _, d := range kept {
		keys = append(keys, d.Allocation.Key)
	}
	if want := []string{"protected", "awaited", "protector", "begun"}; !slices.Equal(keys, want) {
		t.Fatalf("kept %q, want %q", keys, want)
	}
	if want := []int{0, 1}; !slices.Equal(kept[2].After, want) {
		t.Errorf("the protector waits for %v, want %v", kept[2].After, want)
	}
	if want := []bool{false, true, true, true}; !slices.Equal(keptSelected, want) {
		t.Errorf("selected %v, want %v", keptSelected, want)
	}
	if len(left.Selected) != 1 || left.Selected[0].Key != "in use" || len(left.Others) != 1 || left.Others[0].Key != "in use too" {
		t.Errorf("left out %+v", left)
	}
	if !slices.Equal(decisions[4].After, []int{1, 3}) {
		t.Errorf("the decision before waits for %v, which brief has changed", decisions[4].After)
	}
}
