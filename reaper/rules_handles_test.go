package reaper_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// emptyHandle returns the rest of the allocation of sandbox s1.
func emptyHandle() reaper.Allocation {
	return reaper.Allocation{Key: "net.s1", Token: "t1", EmptyHandle: true, Owner: reaper.Owner{Sandbox: "s1"}}
}

// Promise 1, 2. An empty handle may also be the beginning of an allocation.
func TestDecisionOnEmptyHandle(t *testing.T) {
	left := decision{reaper.Suspected, reaper.EmptyHandle, ""}
	has := decision{reaper.InUse, reaper.PodPresent, "a pod shows its sandbox"}
	noOwner := held(reaper.OwnerUnknown, "it names neither a pod nor a sandbox")
	ofWeb, ofBoth := owner(reaper.Owner{Pod: web}), owner(reaper.Owner{Pod: web, Sandbox: "s1"})
	itsPod := policy.Match{Pods: []string{"web"}}
	verdicts(t, entry(func(a *reaper.Allocation) { *a = emptyHandle() }),
		of("no pod shows its sandbox", left, pods(reaper.Pod{Ref: web, Sandbox: "s2"})),
		of("a pod shows its sandbox", has, pods(reaper.Pod{Ref: other, Sandbox: "s1"})),
		of("a finished pod shows its sandbox", has, pods(reaper.Pod{Ref: other, Sandbox: "s1", Finished: true}), terms(releaseAll)),
		of("a pod does not show its addresses", left, pods(reaper.Pod{Ref: other, AddressUnknown: true})),
		of("its pod exists", present, ofWeb, pods(reaper.Pod{Ref: web})),
		of("its pod exists with another sandbox", present, ofBoth, pods(reaper.Pod{Ref: web, Sandbox: "s2"})),
		of("its inferred pod exists", present, ofWeb, inferred, pods(reaper.Pod{Ref: web})),
		of("its pod does not exist", left, ofWeb),
		of("its inferred pod does not exist", left, ofWeb, inferred),
		of("it names no owner", noOwner, owner(reaper.Owner{})),
		of("it names half a pod", noOwner, owner(reaper.Owner{Pod: reaper.PodRef{Name: "a/b/c"}})),
		of("it names a namespace, and a sandbox", noOwner, owner(reaper.Owner{Pod: reaper.PodRef{Namespace: "default"}, Sandbox: "s1"})),
		of("it cannot be understood", held(reaper.Unreadable, "no JSON"), entry(func(a *reaper.Allocation) { a.Unreadable = "no JSON" })),
		of("the store could not notice that it is used again", held(reaper.NoToken, ""), entry(func(a *reaper.Allocation) { a.Token = "" })),
		of("too young", held(reaper.TooYoung, "it is too young until 2026-03-01T12:04:00Z"), entry(func(a *reaper.Allocation) { a.Created = noon.Add(-time.Minute) })),
		of("a rule holds it", held(reaper.RuleHold, "rules[0] holds what it matches: pods web"), ofWeb, holds(itsPod)),
		of("a rule holds another's", left, holds(itsPod)),
		of("another's namespace is excluded", left, excludes("kube-system")),
		of("a rule holds its backend", held(reaper.RuleHold, "rules[0] holds what it matches: backends *"), holds(policy.Match{Backends: []string{"*"}})),
		of("its backend gives it an address by mistake", left, entry(func(a *reaper.Allocation) { a.IP = ip1 }), pods(showing(other, ip1))),
	)
}

// Promise 1. An ADD writes the handle first. As long as the ADD takes, its handle is
// empty, no matter which age the store names.
func TestEmptyHandleWaitsOutAnAddInFlight(t *testing.T) {
	for _, tt := range []struct {
		created             time.Time
		grace, minAge, want time.Duration
	}{
		{time.Time{}, 0, 0, 4 * time.Minute},
		{noon.Add(-24 * time.Hour), 0, 0, 4 * time.Minute},
		{time.Time{}, time.Minute, 6 * time.Minute, 6 * time.Minute},
		{time.Time{}, 9 * time.Minute, 6 * time.Minute, 9 * time.Minute},
	} {
		s := given(entry(func(a *reaper.Allocation) { *a = emptyHandle(); a.Created = tt.created }), waits(tt.grace, tt.minAge))
		s.ripens(t, tt.want)
		s.ledger = s.seen(t, noon)
		s.pools[0].Allocations[0].Token = "t2"
		equal(t, "verdict after it was written again", s.judge(t, noon.Add(time.Hour))[0].Verdict, reaper.Suspected)
	}
}

// Promise 7, 8. Runs remove the rest of a release, and the limits on addresses do not
// stop them.
func TestLimitsDoNotCountEmptyHandles(t *testing.T) {
	handles := reaper.Pool{Name: "handles"}
	for i := range 50 {
		a := emptyHandle()
		a.Key = fmt.Sprint("net.s", i)
		handles.Allocations = append(handles.Allocations, a)
	}
	h := newHarness(fixedStore{poolOf(webAllocation()), handles})
	h.pods.Add(showing(web, ip1))
	h.policy.Limits.MaxReleases, h.policy.Limits.MinEntries = new(1), new(int)
	equal(t, "first summary", h.run(t).Summary, reaper.Counts{Entries: 51, InUse: 1, Suspected: 50})
	h.now = noon.Add(4 * time.Minute)
	report := h.run(t)
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 51, InUse: 1, Planned: 50, Released: 50})
	equal(t, "pools", report.Pools, []reaper.PoolReport{})
	equal(t, "address", report.Entries[1].IP, "")
}

// Promise 2, 9. An empty handle endangers no pod. Still, a census without pods is not
// believed.
func TestEmptyHandlesAreRefusedInAnEmptyCluster(t *testing.T) {
	h := newHarness(fixedStore{poolOf(emptyHandle())})
	h.run(t)
	h.now = noon.Add(time.Hour)
	_, err := reaper.Run(t.Context(), h.options())
	var limit *reaper.LimitError
	if !errors.As(err, &limit) {
		t.Fatalf("run: %v, want a LimitError", err)
	}
	equal(t, "refusal", *limit, reaper.LimitError{Limit: "the cluster has no pods", Allowed: "none"})
}
