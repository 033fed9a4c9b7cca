package reaper_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// An API server is so slow that all warrants expire if as many pools are released at the same
// time as the run may. Then it releases fewer at a time.
func TestRunAsksASlowAPIServerForLessAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pools fixedStore
		for i, a := range allocations(64) {
			pool := poolOf(a)
			pool.Name = fmt.Sprint(i)
			pools = append(pools, pool)
		}
		var busy atomic.Int64
		s := wrapped{pools, func(_ context.Context, _ string, ws []reaper.Warrant) []error {
			busy.Add(1)
			time.Sleep(time.Millisecond) // the others begin
			time.Sleep(time.Duration(busy.Load()) * 200 * time.Millisecond)
			busy.Add(-1)
			_, err := ws[0].Allocation()
			return []error{err}
		}}
		h := newHarness(s)
		h.policy.Limits.MaxFraction = new(1.0)
		h.pods.Add(reaper.Pod{Ref: other})
		h.change = func(o *reaper.Options) { o.Concurrency = 32 }
		for key, outcome := range outcomes(h.run(t)) {
			equal(t, "outcome of "+key, outcome, reaper.Released)
		}
	})
}
