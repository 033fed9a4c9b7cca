package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// lease returns an allocation on a node, of sandbox s1, an hour old at noon.
func lease() ipam.Allocation {
	return ipam.Allocation{
		Key: "10.0.0.1", IP: ip1, Token: "t1", ByRuntime: true, Created: noon.Add(-time.Hour),
		Owner: ipam.Owner{Sandbox: "s1", Interface: "eth0"},
	}
}

// leased makes the first allocation a lease, and another sandbox exist.
var leased = all(entry(func(a *ipam.Allocation) { *a = lease() }), sandboxes("s2"))

// blank makes the lease one of an ADD that broke off before it wrote an owner.
var blank = entry(func(a *ipam.Allocation) { a.Owner, a.Blank = ipam.Owner{}, true })

// Promise 1, 2. On a node, the container runtime decides, and any other evidence only keeps.
func TestDecisionOnNode(t *testing.T) {
	gone := decision{judge.Suspected, judge.SandboxAbsent, ""}
	here := decision{judge.InUse, judge.SandboxPresent, ""}
	brokeOff := decision{judge.Suspected, judge.SandboxAbsent, "an ADD broke off before writing an owner"}
	ofWeb := entry(func(a *ipam.Allocation) { a.Owner.Pod = web })
	unread := func(s *situation) { s.sandboxes = nil }
	made := func(ago time.Duration) change {
		return entry(func(a *ipam.Allocation) { a.Created = noon.Add(-ago) })
	}
	minAge := func(d time.Duration) change {
		return terms(func(p *policy.Policy) { p.MinAge = &policy.Duration{Duration: d} })
	}
	verdicts(t, leased,
		of("the sandbox exists", here, sandboxes("s0", "s1")),
		of("a sandbox begins with the ID", here, sandboxes("s0", "s1234")),
		of("the sandbox is gone", gone, sandboxes("s", "s0", "s2")),
		of("there is none", gone, sandboxes()),
		of("the sandboxes were not read", held(judge.NoCensus, ""), unread),
		of("it names no sandbox", held(judge.OwnerUnknown, "it names no sandbox"), entry(func(a *ipam.Allocation) { a.Owner.Sandbox = "" })),
		of("it names a pod and no sandbox", held(judge.OwnerUnknown, "it names no sandbox"), owner(ipam.Owner{Pod: web})),
		of("a pod shows the address", shown, pods(showing(other, ip1))),
		of("a finished pod shows the address", gone, pods(finished(showing(other, ip1)))),
		of("its pod shows the address", present, ofWeb, pods(showing(web, ip1))),
		of("its pod exists in another sandbox", gone, ofWeb, pods(showing(web, ip2))),
		of("a pod hides its address", gone, pods(census.Pod{Ref: other, AddressUnknown: true})),
		of("it cannot be understood", held(judge.Unreadable, "it is empty"), entry(func(a *ipam.Allocation) { a.Unreadable = "it is empty" })),
		of("an ADD broke off before it named a sandbox", brokeOff, blank),
		of("the same, and the policy is for other pods", brokeOff, blank, terms(func(p *policy.Policy) { p.Namespaces.Include = []string{"shop"} })),
		of("the same, and a rule holds pods", brokeOff, blank, holds(policy.Match{Pods: []string{"*"}})),
		of("the same, and the sandboxes were not read", held(judge.NoCensus, ""), blank, unread),
		of("the same, and a pod shows the address", shown, blank, pods(showing(other, ip1))),
		of("something protects it", held(judge.Protected, "not of the runtime"), entry(func(a *ipam.Allocation) { a.Protected = "not of the runtime" })),
		of("it is younger than a sandbox that is being made", held(judge.TooYoung, "it is too young until 2026-03-01T12:01:00Z"), made(9*time.Minute), minAge(0)),
		of("it is younger than the policy allows", held(judge.TooYoung, "it is too young until 2026-03-01T13:00:00Z"), minAge(2*time.Hour)),
		of("it is as old as a sandbox can be that is being made", gone, made(10*time.Minute)),
	)
}

// Promise 1. What an ADD left behind goes when it is older than an ADD can take. A lease whose
// age is not known, or in the future, waits like one that was just made.
func TestLeaseWaitsForItsAge(t *testing.T) {
	made := func(at time.Time) change { return entry(func(a *ipam.Allocation) { a.Created = at }) }
	for _, created := range []time.Time{{}, noon.Add(24 * time.Hour)} {
		given(leased, made(created), waits(0, 0)).ripens(t, 10*time.Minute)
		given(leased, blank, made(created), waits(0, 0)).ripens(t, 10*time.Minute)
	}
	given(leased, blank, made(noon.Add(-4*time.Minute)), waits(0, 0)).ripens(t, 6*time.Minute)
}
