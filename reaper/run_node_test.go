package reaper_test

import (
	"fmt"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// nodeHarness returns a harness on a node with leases of this many sandboxes that are gone.
func nodeHarness(leases int) *harness {
	pool := ipam.Pool{Name: "cbr0"}
	for i := range leases {
		a := lease()
		a.Key, a.Owner.Sandbox = fmt.Sprint("10.0.0.", i), fmt.Sprint("gone", i)
		pool.Allocations = append(pool.Allocations, a)
	}
	h := newHarness(fixedStore{pool})
	h.onNode = true
	h.policy.Limits.MaxFraction = new(1.0)
	return h
}

// Promise 1. A runtime without a sandbox might not be the kubelet's.
func TestRuntimeWithoutSandboxesIsRefused(t *testing.T) {
	h := nodeHarness(2)
	h.pods.Add(census.Pod{Ref: web})
	_, err := reaper.Run(t.Context(), h.options())
	equal(t, "limit", limitError(t, err).Refusals[0].Limit, "the container runtime has no sandboxes")
	h.pods.AddSandboxes(census.Sandbox{ID: "s1"})
	equal(t, "released with a sandbox", h.run(t).Summary.Released, 2)
}

// Promise 1. A drop of the sandboxes is doubted, as a drop of the pods is.
func TestDropOfSandboxesIsDoubted(t *testing.T) {
	h := nodeHarness(1)
	h.policy.Limits.MinEntries = new(int)
	for i := range 40 {
		h.pods.AddSandboxes(census.Sandbox{ID: fmt.Sprint("s", i), Pod: web})
	}
	equal(t, "released", h.run(t).Summary.Released, 1)
	h.pods.Remove(web)
	h.pods.AddSandboxes(census.Sandbox{ID: "other"})
	_, err := reaper.Run(t.Context(), h.options())
	equal(t, "refusal", messages(limitError(t, err).Refusals),
		"limits.maxPodDrop: the container runtime has 1 sandboxes, down from 40 in the last run, a drop of more than the allowed 50 %")
}
