package undo_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

// A run that waits looks, and writes its journal, more than once. Its second look
// releases all that is due by then, and it is undone as a whole, to the byte.
func TestRunThatLookedTwiceIsUndone(t *testing.T) {
	// It was seen an hour ago.
	const later = "rules:\n- {match: {pods: [gone-2]}, gracePeriod: 3603s}\n"
	w := newWorld(t, calico.KubernetesT(t))
	result := w.run(releaseNow+later, "--wait")
	if n := result.Report.Summary.Released; n != records {
		t.Errorf("%d were released, want %d", n, records)
	}
	if parts := w.journalParts(); len(parts) != 2 {
		t.Fatalf("%d parts of journals, want one for each look", len(parts))
	}
	w.restore(w.journals()[0])
	w.wantStores("after the restoration", w.before)
}
