package run_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// Who had an address, who released it, and who put it back: history and explain answer from the
// ledger and the journals alone, and a lack of rights to these is no error.
func TestHistoryAndExplainTellOfReleasesAndRestores(t *testing.T) {
	w := kit.NewWorld(t)
	w.Must(w.Memory.Forget(t.Context()))
	empty := w.Ends(reap.ExitDone, w.Starts("history", kit.ReleaseNow, "-o=table")).Stdout
	for _, want := range []string{"there is no CronJob in namespace " + kit.Home, "no run recorded in namespace " + kit.Home, "-n " + kit.Home + " get cronjobs"} {
		if !strings.Contains(empty, want) {
			t.Errorf("an empty history says %q, want %q", empty, want)
		}
	}
	w.Run(kit.ReleaseNow, "--grace-period=0s", "--pool=10.1.0.0/16")
	id := w.Journals()[0]
	const ip = "10.1.0.1" // of gone-1
	freed := explained(w, reap.ExitDone, ip)
	if freed.LastRelease == nil || freed.LastRelease.ID != id || len(freed.LastRelease.Entries) == 0 || len(freed.LastRelease.Restores) > 0 {
		t.Fatalf("explain %s says %+v, want that run %s released it", ip, freed.LastRelease, id)
	}
	for _, e := range freed.LastRelease.Entries {
		if e.IP != ip || e.Owner.Namespace != shop || e.Owner.Pod != "gone-1" {
			t.Errorf("explain %s says that %+v was released", ip, e)
		}
	}
	if gone := explained(w, reap.ExitDone, shop+"/gone-1").LastRelease; gone == nil || gone.ID != id {
		t.Errorf("explain of the pod that had it says %+v, want run %s", gone, id)
	}

	w.Restores(reap.ExitDone, "--run="+id, "--ip="+ip)
	var h struct {
		Runs []journal.PastRun `json:"runs"`
	}
	w.Must(json.Unmarshal([]byte(w.Ends(reap.ExitDone, w.Starts("history", kit.ReleaseNow)).Stdout), &h))
	slices.SortFunc(h.Runs, func(a, b journal.PastRun) int { return a.Recorded - b.Recorded }) // they may be of one second
	if len(h.Runs) != 2 || h.Runs[1].ID != id || h.Runs[0].Result == nil || h.Runs[1].Result == nil || h.Runs[0].Result.Restore == nil {
		t.Fatalf("history has %+v, want the restore and then run %s", h.Runs, id)
	}
	back, run := h.Runs[0], h.Runs[1]
	want := journal.RestoreResult{ID: back.ID, Of: id, Restored: 1}
	if diff := cmp.Diff([]journal.RestoreResult{*back.Result.Restore}, []journal.RestoreResult{want}); diff != "" || back.By == "" || back.Result.Selection != "address "+ip {
		t.Errorf("the restore is by %q, of %q (-got +want):\n%s", back.By, back.Result.Selection, diff)
	}
	if diff := cmp.Diff(run.Restores, []journal.RestoreResult{want}); diff != "" {
		t.Errorf("restores of the run (-got +want):\n%s", diff)
	}
	if r := run.Result; r.Selection != "pool 10.1.0.0/16" || r.Overrides != "--grace-period=0s" || r.Released == nil || *r.Released != run.Addresses || *r.Released >= run.Recorded {
		t.Errorf("the run is %+v, want the addresses of %d allocations", *r, run.Recorded)
	}
	if again := explained(w, reap.ExitDone, ip).LastRelease; again == nil || len(again.Restores) != 1 {
		t.Errorf("explain of what is back, and leaked, says %+v, want the run and its restore", again)
	}

	g, err := reap.ShippedGrant("plan", "whereabouts", "overlapping", "calico")
	w.Must(err)
	a, err := reap.InstallAccount(t.Context(), w.Cluster, g)
	w.Must(err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := a.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	w.As(a)
	x := explained(w, reap.ExitPartial, ip) // the shipped roles have no rights to reserved IPs
	unknown := func(warning string) bool { return strings.HasPrefix(warning, "whether a run released it is unknown: ") }
	if x.LastRelease != nil || !slices.ContainsFunc(x.Warnings, unknown) {
		t.Errorf("without the right to list journals, explain has %+v and warns %q", x.LastRelease, x.Warnings)
	}
}

// An explanation is what explain prints, as far as it is looked at here.
type explanation struct {
	LastRelease *journal.PastRun `json:"lastRelease"`
	Warnings    []string         `json:"warnings"`
}

// explained explains an address or a pod.
func explained(w *kit.World, code int, what string) (x explanation) {
	w.Helper()
	w.Must(json.Unmarshal([]byte(w.Ends(code, w.Starts("explain", kit.ReleaseNow, what)).Stdout), &x))
	return x
}
