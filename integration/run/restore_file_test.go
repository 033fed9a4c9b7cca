package run_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// A journal that a run wrote to a file is as good as the cluster's: it restores without that one,
// even from stdin (promise 10).
func TestFileOfARunRestoresWhatItReleased(t *testing.T) {
	w := world.New(t)
	path := w.Dir + "/journal"
	w.Run(world.ReleaseNow, "--journal="+path)
	w.End = w.Stores()
	w.Must(w.Memory.Forget(w.Context()))
	w.Restores(reap.ExitDone, "--journal="+path)
	w.WantStores("after the restoration from the file", w.Before)
	text, err := os.ReadFile(path)
	w.Must(err)

	w.Put(w.End)
	w.Must(w.Memory.Unlock(w.Context()))
	elsewhere, err := proxy.Start(w.Cluster.Config)
	w.Must(err)
	t.Cleanup(elsewhere.Stop)
	w.Proxy = elsewhere
	w.As(nil)
	p := w.StartsWith(string(text), "restore", world.ReleaseNow, "--journal=-")
	r := w.RestoreReportOf(w.Ends(reap.ExitDone, p))
	if r.Summary.Restored != world.Records {
		t.Errorf("%+v, want %d put back", r.Summary, world.Records)
	}
	if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, "the journal is from a run against") {
		t.Errorf("warnings %q, want that the address of the API server is another one", got)
	}
	w.WantStores("after the restoration from stdin", w.Before)
}
