package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// An address is free only if no store has it. So the reservation of an address is
// selected with the entry of its pool.
func TestAddressOfOnePodIsSelectedInAllStores(t *testing.T) {
	m, two := backendtest.NewMemory("memory"), backendtest.NewTwoStep("two-step")
	h := newHarness(m.Backend(), two.Backend()).selecting(judge.Selection{Pools: []string{"a"}})
	h.addPods(t, m, "live-1", "gone-1")
	h.addPods(t, two, "live-1", "gone-1", "gone-2")
	rep := h.run(t)
	equal(t, "released", outcomes(rep), map[string]report.Fate{
		"1": report.Kept, "2": report.Released, "10.0.0.1": report.Kept, "10.0.0.2": report.Released,
	})
	equal(t, "reservations left", len(contentsOf(t, two)), 2)
}

// Promise 1, 8. A release that was cut short is not undone because the next run selects
// something else. But any run gives back what must not be released after all, because a
// live pod may have the address.
func TestInterruptedAllocationThatIsNotSelected(t *testing.T) {
	h, m := interruptedHarness(t)
	before := contentsOf(t, m)
	rep := h.selecting(onePod("live-1")).run(t)
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "entries", rep.Summary.Entries, 1)

	h.pods.Add(census.Pod{Ref: app("gone-1").Pod})
	rep = h.run(t)
	equal(t, "what was written is reported", outcomes(rep), map[string]report.Fate{"10.0.0.1": report.Kept, "10.0.0.2": report.Returned})
	if a := listed(t, h, "a/10.0.0.2/10.0.0.2"); a.Interrupted {
		t.Error("its owner is back, and it is not given back")
	}
}

func TestRunWaitsOnlyForWhatIsSelected(t *testing.T) {
	for pod, want := range map[string]time.Duration{"gone-1": 5 * time.Minute, "gone-2": 15 * time.Minute} {
		h, m := waitingHarness(t)
		shortenGrace(h, 5*time.Minute)
		sleep := (&fakeSleep{}).attach(h.selecting(onePod(pod)))
		rep := h.run(t)
		equal(t, "slept for "+pod, sleep.slept, []time.Duration{want + time.Second})
		equal(t, "released", rep.Summary, report.Counts{Entries: 1, Planned: 1, Released: 1})
		equal(t, "allocations left", len(contentsOf(t, m)), 2)
	}
}
