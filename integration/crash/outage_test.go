package crash_test

import (
	"context"
	"sync"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// The API server goes away in the middle of a run. What was done by then is in the
// report, the rest is not, and the next run does it (promises 7 and 8).
func TestAPIServerGoesAwayDuringARun(t *testing.T) {
	w, _ := fixture(t)
	w.Again()
	var once sync.Once
	w.Proxy.Before(proxy.On("delete overlappingrangeipreservations"), func(context.Context, proxy.Request) proxy.Action {
		once.Do(func() {
			if err := w.Cluster.StopAPIServer(); err != nil {
				w.Error(err)
			}
		})
		return proxy.Pass()
	})
	w.Must(w.Memory.Unlock(w.Context()))
	result := w.Ends(reap.ExitPartial, runs(w))
	w.Must(w.Cluster.StartAPIServer(w.Context()))
	w.WantInUse()
	wantTrue(w, result.Report)
	wantNamed(w, result)
	if result.Report.Summary.Released == 0 {
		w.Error("the report says that nothing was released; an entry of a pool was")
	}
	w.Converge()
}
