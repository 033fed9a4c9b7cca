package reaper_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 2. An excluded address stays when its pod is gone. A release that had begun
// before the address was excluded is finished.
func TestAddressThatItsStoreProtectsIsHeld(t *testing.T) {
	const excluded = "excluded from its network by default/lan"
	for _, tt := range []struct {
		name   string
		change func(*reaper.Allocation)
		want   decision
	}{
		{"excluded", func(*reaper.Allocation) {}, decision{reaper.Held, reaper.Protected, excluded}},
		{"in the midst of a release", func(a *reaper.Allocation) { a.Interrupted = true },
			decision{reaper.Orphaned, reaper.PodAbsent, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Protected = excluded
			tt.change(&a)
			got := situation{pools: []reaper.Pool{poolOf(a)}, pods: []reaper.Pod{{Ref: other}}}.judge(t, noon)
			equal(t, "decision", decisionOf(got[0]), tt.want)
		})
	}
}
