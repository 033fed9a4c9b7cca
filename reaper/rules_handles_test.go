package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// emptyHandle returns what is left of the allocation of sandbox s1.
func emptyHandle() ipam.Allocation {
	return ipam.Allocation{Key: "net.s1", Token: "t1", EmptyHandle: true, Owner: ipam.Owner{Sandbox: "s1"}}
}

// Promise 1, 2. An empty handle may also be the beginning of an allocation.
func TestDecisionOnEmptyHandle(t *testing.T) {
	left := decision{judge.Suspected, judge.EmptyHandle, ""}
	has := decision{judge.InUse, judge.PodPresent, "a pod shows its sandbox"}
	noOwner := held(judge.OwnerUnknown, "it names neither a pod nor a sandbox")
	ofWeb, ofBoth := owner(ipam.Owner{Pod: web}), owner(ipam.Owner{Pod: web, Sandbox: "s1"})
	itsPod := policy.Match{Pods: []string{"web"}}
	verdicts(t, entry(func(a *ipam.Allocation) { *a = emptyHandle() }),
		of("no pod shows its sandbox", left, pods(census.Pod{Ref: web, Sandbox: "s2"})),
		of("a pod shows its sandbox", has, pods(census.Pod{Ref: other, Sandbox: "s1"})),
		of("a finished pod shows its sandbox", has, pods(census.Pod{Ref: other, Sandbox: "s1", Finished: true}), terms(releaseAll)),
		of("a pod does not show its addresses", left, pods(census.Pod{Ref: other, AddressUnknown: true})),
		of("its pod exists", present, ofWeb, pods(census.Pod{Ref: web})),
		of("its pod exists with another sandbox", present, ofBoth, pods(census.Pod{Ref: web, Sandbox: "s2"})),
		of("its pod does not exist", left, ofWeb),
		of("it names no owner", noOwner, owner(ipam.Owner{})),
		of("it names a namespace, and a sandbox", noOwner, owner(ipam.Owner{Pod: ipam.PodRef{Namespace: "default"}, Sandbox: "s1"})),
		of("the store could not notice that it is used again", held(judge.NoToken, ""), entry(func(a *ipam.Allocation) { a.Token = "" })),
		of("too young", held(judge.TooYoung, "it is too young until 2026-03-01T12:04:00Z"), entry(func(a *ipam.Allocation) { a.Created = noon.Add(-time.Minute) })),
		of("a rule holds it", held(judge.RuleHold, "held by rules[0]: pods web"), ofWeb, holds(itsPod)),
		of("a rule holds another's", left, holds(itsPod)),
		of("a rule holds its backend", held(judge.RuleHold, "held by rules[0]: backends *"), holds(policy.Match{Backends: []string{"*"}})),
		of("its backend gives it an address by mistake", left, entry(func(a *ipam.Allocation) { a.IP = ip1 }), pods(showing(other, ip1))),
	)
}

// Promise 1. An ADD writes the handle first. As long as the ADD takes, its handle is
// empty, no matter what age the store names.
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
		s := given(entry(func(a *ipam.Allocation) { *a = emptyHandle(); a.Created = tt.created }), waits(tt.grace, tt.minAge))
		s.ripens(t, tt.want)
		s.ledger = s.seen(t, noon)
		s.pools[0].Allocations[0].Token = "t2"
		equal(t, "verdict after it was written again", s.judge(t, noon.Add(time.Hour))[0].Verdict, judge.Suspected)
	}
}
