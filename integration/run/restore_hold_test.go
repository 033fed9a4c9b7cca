package run_test

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// A run right after a restore does not undo it, also without a grace period. The flag
// that ends the hold lets it.
func TestRunAfterARestoreHoldsWhatWasPutBack(t *testing.T) {
	holds := strings.Replace(world.ReleaseNow, ", restoreHold: 0s", "", 1)
	w := world.New(t, calico.KubernetesT(t))
	if n := w.Run(holds).Report.Summary.Released; n != world.Records {
		t.Fatalf("%d were released, want %d", n, world.Records)
	}
	w.Restore(w.Journals()[0])
	w.WantStores("after the restoration", w.Before)

	r := w.Run(holds).Report
	reasons := map[string]int{}
	for _, e := range r.Entries {
		reasons[e.Reason]++
	}
	if reasons["Restored"] != world.Records || r.Summary.Released > 0 {
		t.Errorf("%d were released, and the reasons are %v, want %d Restored", r.Summary.Released, reasons, world.Records)
	}
	w.WantStores("after a run", w.Before)

	if n := w.Run(holds, "--release-restored").Report.Summary.Released; n == 0 {
		t.Error("the flag does not end the hold")
	}
}
