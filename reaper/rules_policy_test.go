package reaper_test

import (
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 1, 2.
func TestFinishedPodHoldsUnlessThePolicySaysRelease(t *testing.T) {
	oldUID := func(a *reaper.Allocation) { a.Owner.UID = "old" }
	sibling := webAllocation()
	sibling.Owner.Sandbox = "s2"
	sibling.Key, sibling.IP = "2", ip2
	for _, tt := range []struct {
		name          string
		entry         func(*reaper.Allocation)
		pod           reaper.Pod
		hold, release decision
	}{
		{
			name:    "its own pod, which shows the address",
			pod:     showing(web, ip1),
			hold:    decision{reaper.Held, reaper.PodFinished, ""},
			release: decision{reaper.Suspected, reaper.PodFinished, ""},
		}, {
			name:    "its own pod, which shows nothing",
			pod:     reaper.Pod{Ref: web},
			hold:    decision{reaper.Held, reaper.PodFinished, ""},
			release: decision{reaper.Suspected, reaper.PodFinished, ""},
		}, {
			name:    "another pod, which shows the address",
			pod:     showing(other, ip1),
			hold:    decision{reaper.Suspected, reaper.PodAbsent, ""},
			release: decision{reaper.Suspected, reaper.PodAbsent, ""},
		}, {
			name:    "another pod, which shows the address of an allocation without a name",
			entry:   func(a *reaper.Allocation) { a.Owner = reaper.Owner{Sandbox: "alone"} },
			pod:     showing(other, ip1),
			hold:    decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
			release: decision{reaper.Held, reaper.OwnerUnknown, "it names a sandbox only"},
		}, {
			name:    "another pod, which shows the address of an allocation with a derived name",
			entry:   func(a *reaper.Allocation) { a.Inferred = true },
			pod:     showing(other, ip1),
			hold:    decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
			release: decision{reaper.Held, reaper.OwnerUnknown, "its handle does not say that it belongs to a pod"},
		}, {
			name:    "a pod of that name with another UID, which shows nothing",
			entry:   oldUID,
			pod:     reaper.Pod{Ref: web, UID: "new"},
			hold:    decision{reaper.Suspected, reaper.PodReplaced, ""},
			release: decision{reaper.Suspected, reaper.PodReplaced, ""},
		}, {
			name:    "a pod of that name with another UID, which shows the address",
			entry:   oldUID,
			pod:     reaper.Pod{Ref: web, UID: "new", Addresses: []netip.Addr{ip1}},
			hold:    decision{reaper.Held, reaper.PodFinished, ""},
			release: decision{reaper.Suspected, reaper.PodFinished, ""},
		}, {
			name:    "its own pod, which shows the address and another of the pool",
			pod:     showing(web, ip1, ip2),
			hold:    decision{reaper.Held, reaper.PodFinished, ""},
			release: decision{reaper.Suspected, reaper.PodFinished, ""},
		}, {
			name:    "its own pod, which shows another address of the pool",
			entry:   func(a *reaper.Allocation) { a.Owner.Interface, a.NeverAdopted = "", true },
			pod:     showing(web, ip2),
			hold:    decision{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"},
			release: decision{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			if tt.entry != nil {
				tt.entry(&a)
			}
			for d, want := range map[policy.Disposition]decision{
				policy.Hold: tt.hold, policy.Release: tt.release, "": tt.hold, "nonsense": tt.hold,
			} {
				s := situation{pools: []reaper.Pool{poolOf(a, sibling)}, pods: []reaper.Pod{finished(tt.pod)}}
				s.policy = func(p *policy.Policy) { p.Pods.Finished = d }
				equal(t, "verdict under "+string(d), decisionOf(s.judge(t, noon)[0]), want)
			}
		})
	}
}

// Promise 1, 2.
func TestAllocationThatNamesOnlyASandbox(t *testing.T) {
	held := decision{reaper.Held, reaper.OwnerUnknown, "it names a sandbox only"}
	for _, tt := range []struct {
		name          string
		owner         reaper.Owner
		pods          []reaper.Pod
		hold, release decision
	}{
		{
			name:    "no pod shows the sandbox or the address",
			owner:   reaper.Owner{Sandbox: "s1"},
			pods:    []reaper.Pod{showing(other, ip2)},
			hold:    held,
			release: decision{reaper.Suspected, reaper.SandboxAbsent, ""},
		}, {
			name:    "a pod shows the sandbox",
			owner:   reaper.Owner{Sandbox: "s1"},
			pods:    []reaper.Pod{{Ref: other, Sandbox: "s1"}},
			hold:    decision{reaper.InUse, reaper.PodPresent, "a pod shows its sandbox"},
			release: decision{reaper.InUse, reaper.PodPresent, "a pod shows its sandbox"},
		}, {
			name:    "a pod shows the address",
			owner:   reaper.Owner{Sandbox: "s1"},
			pods:    []reaper.Pod{{Ref: other, Addresses: []netip.Addr{ip1}, Sandbox: "s2"}},
			hold:    decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
			release: decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
		}, {
			name:    "a pod does not show its addresses yet",
			owner:   reaper.Owner{Sandbox: "s1"},
			pods:    []reaper.Pod{showing(web, ip2), {Ref: other, AddressUnknown: true}},
			hold:    held,
			release: decision{reaper.Held, reaper.OwnerUnknown, "it names a sandbox only, and not every pod shows its addresses"},
		}, {
			name:    "it names no owner at all",
			hold:    decision{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
			release: decision{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
		}, {
			name:    "it names a pod without a namespace",
			owner:   reaper.Owner{Pod: reaper.PodRef{Name: "a/b/c"}, Sandbox: "s1"},
			hold:    decision{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
			release: decision{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
		}, {
			name:    "it names a namespace without a pod",
			owner:   reaper.Owner{Pod: reaper.PodRef{Namespace: "default"}, Sandbox: "s1"},
			hold:    decision{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
			release: decision{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Owner = tt.owner
			for d, want := range map[policy.Disposition]decision{
				policy.Hold: tt.hold, policy.Release: tt.release, "": tt.hold, "nonsense": tt.hold,
			} {
				s := situation{pools: []reaper.Pool{poolOf(a)}, pods: tt.pods}
				s.policy = func(p *policy.Policy) { p.Pods.Unnamed = d }
				equal(t, "verdict under "+string(d), decisionOf(s.judge(t, noon)[0]), want)
			}
		})
	}
}

// Promise 2. An allocation without a namespace falls under every rule that may be about
// its pod.
func TestAllocationThatNamesOnlyASandboxFallsUnderEveryRuleThatMayMatch(t *testing.T) {
	a := webAllocation()
	a.Owner = reaper.Owner{Sandbox: "s1"}
	for _, tt := range []struct {
		name   string
		policy func(*policy.Policy)
		want   decision
	}{
		{"some namespaces are excluded", func(p *policy.Policy) { p.Namespaces.Exclude = []string{"prod"} },
			decision{reaper.Held, reaper.OutOfScope, "namespaces.exclude has prod"}},
		{"a rule holds some namespaces", func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Namespaces: []string{"prod"}}, Hold: true}}
		}, decision{reaper.Held, reaper.RuleHold, "rules[0] holds what it matches: namespaces prod"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := situation{pools: []reaper.Pool{poolOf(a)}}
			s.policy = func(p *policy.Policy) {
				p.Pods.Unnamed = policy.Release
				tt.policy(p)
			}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
		})
	}
}
