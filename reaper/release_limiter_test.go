package reaper_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A limitedStore notes the limits that a run says.
type limitedStore struct {
	fixedStore
	limits *[]int
}

// Limit implements reaper.Limiter.
func (s limitedStore) Limit(requests int) { *s.limits = append(*s.limits, requests) }

// A backend learns how many requests it may make before its first release.
func TestConcurrencyLimitsTheRequestsOfABackend(t *testing.T) {
	for concurrency, want := range map[int]int{-1: 1, 0: 1, 7: 7} {
		var limits []int
		h := newHarness(limitedStore{fixedStore{poolOf(allocations(1)...)}, &limits})
		h.pods.Add(reaper.Pod{Ref: other})
		h.change = func(o *reaper.Options) { o.Concurrency = concurrency }
		h.run(t)
		equal(t, "limits", limits, []int{want})
	}
}
