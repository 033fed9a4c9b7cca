package whereabouts_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// The range of a network was changed, and its pod was made again: the plugin gives it an address of
// the new range, and leaves the entry of the old one. That is kept, and the note says what the pod shows
// (promises 1 and 7). It goes when no pod has the name.
func TestAddressOfARangeThatWasChangedIsKeptAndTold(t *testing.T) {
	for _, tt := range []struct {
		name     string
		disabled bool
	}{{"with reservations", false}, {"without reservations", true}} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			before := f.add(plugin.Network{Range: "10.0.0.0/24", DisableOverlapping: tt.disabled}, "web-0")
			after := f.add(plugin.Network{Range: "10.1.0.0/24", DisableOverlapping: tt.disabled}, "web-0")
			f.runs("web-0", after...)
			stored := f.store()
			got := f.mustReap(reap.ExitDone, "")
			f.wantStore(stored)
			if want := map[bool]int{false: 4, true: 2}[tt.disabled]; len(got.report.Entries) != want {
				t.Errorf("the report has %d allocations, want %d", len(got.report.Entries), want)
			}
			for _, e := range got.report.Entries {
				note := ""
				if e.IP == before[0] {
					note = "its pod shows 10.1.0.1 on net1"
				}
				if e.Decision != "inUse" || e.Note != note {
					t.Errorf("%s of %s is %s, %q; want inUse, %q", e.IP, e.Backend, e.Decision, e.Note, note)
				}
			}
			f.gone("web-0")
			f.converge()
			f.wantOwners(nothing)
		})
	}
}
