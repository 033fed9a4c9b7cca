package reaper_test

import (
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 1, 2.
func TestFinishedPodHoldsUnlessThePolicySaysRelease(t *testing.T) {
	oldUID := func(r *reaper.Allocation) { r.Owner.UID = "old" }
	sibling := webEntry()
	sibling.Key, sibling.IP = "2", ip2
	for _, tt := range []struct {
		name          string
		entry         func(*reaper.Allocation)
		pod           reaper.Pod
		hold, release finding
	}{
		{
			name:    "its own pod, which shows the address",
			pod:     showing(web, ip1),
			hold:    finding{reaper.Held, reaper.PodFinished, ""},
			release: finding{reaper.Suspected, reaper.PodFinished, ""},
		}, {
			name:    "its own pod, which shows nothing",
			pod:     reaper.Pod{Ref: web},
			hold:    finding{reaper.Held, reaper.PodFinished, ""},
			release: finding{reaper.Suspected, reaper.PodFinished, ""},
		}, {
			name:    "another pod, which shows the address",
			pod:     showing(other, ip1),
			hold:    finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
			release: finding{reaper.Suspected, reaper.PodAbsent, ""},
		}, {
			name:    "a pod of that name with another UID, which shows nothing",
			entry:   oldUID,
			pod:     reaper.Pod{Ref: web, UID: "new"},
			hold:    finding{reaper.Suspected, reaper.PodReplaced, ""},
			release: finding{reaper.Suspected, reaper.PodReplaced, ""},
		}, {
			name:    "a pod of that name with another UID, which shows the address",
			entry:   oldUID,
			pod:     reaper.Pod{Ref: web, UID: "new", Addresses: []netip.Addr{ip1}},
			hold:    finding{reaper.Held, reaper.PodFinished, ""},
			release: finding{reaper.Suspected, reaper.PodFinished, ""},
		}, {
			name:    "its own pod, which shows the address and another of the pool",
			pod:     showing(web, ip1, ip2),
			hold:    finding{reaper.Held, reaper.PodFinished, ""},
			release: finding{reaper.Suspected, reaper.PodFinished, ""},
		}, {
			name:    "its own pod, which shows another address of the pool",
			pod:     showing(web, ip2),
			hold:    finding{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"},
			release: finding{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := webEntry()
			if tt.entry != nil {
				tt.entry(&r)
			}
			for d, want := range map[policy.Disposition]finding{
				policy.Hold: tt.hold, policy.Release: tt.release, "": tt.hold, "nonsense": tt.hold,
			} {
				s := scene{pools: []reaper.Pool{poolOf(r, sibling)}, pods: []reaper.Pod{finished(tt.pod)}}
				s.policy = func(p *policy.Policy) { p.Pods.Finished = d }
				equal(t, "verdict under "+string(d), found(s.judge(t, noon)[0]), want)
			}
		})
	}
}

// Promise 1, 2.
func TestEntryThatNamesASandboxOnly(t *testing.T) {
	held := finding{reaper.Held, reaper.OwnerUnknown, "it names a sandbox only"}
	for _, tt := range []struct {
		name          string
		owner         reaper.Owner
		pods          []reaper.Pod
		hold, release finding
	}{
		{
			name:    "no pod shows the sandbox or the address",
			owner:   reaper.Owner{Sandbox: "s1"},
			pods:    []reaper.Pod{showing(other, ip2)},
			hold:    held,
			release: finding{reaper.Suspected, reaper.SandboxAbsent, ""},
		}, {
			name:    "a pod shows the sandbox",
			owner:   reaper.Owner{Sandbox: "s1"},
			pods:    []reaper.Pod{{Ref: other, Sandbox: "s1"}},
			hold:    finding{reaper.InUse, reaper.PodPresent, "a pod shows its sandbox"},
			release: finding{reaper.InUse, reaper.PodPresent, "a pod shows its sandbox"},
		}, {
			name:    "a pod shows the address",
			owner:   reaper.Owner{Sandbox: "s1"},
			pods:    []reaper.Pod{{Ref: other, Addresses: []netip.Addr{ip1}, Sandbox: "s2"}},
			hold:    finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
			release: finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
		}, {
			name:    "a pod does not show its addresses yet",
			owner:   reaper.Owner{Sandbox: "s1"},
			pods:    []reaper.Pod{showing(web, ip2), {Ref: other, AddressUnknown: true}},
			hold:    held,
			release: finding{reaper.Held, reaper.OwnerUnknown, "it names a sandbox only, and not every pod shows its addresses"},
		}, {
			name:    "it names nobody at all",
			hold:    finding{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
			release: finding{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
		}, {
			name:    "it names a pod without a namespace",
			owner:   reaper.Owner{Pod: reaper.PodRef{Name: "a/b/c"}, Sandbox: "s1"},
			hold:    finding{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
			release: finding{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
		}, {
			name:    "it names a namespace without a pod",
			owner:   reaper.Owner{Pod: reaper.PodRef{Namespace: "default"}, Sandbox: "s1"},
			hold:    finding{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
			release: finding{reaper.Held, reaper.OwnerUnknown, "it names no pod"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := webEntry()
			r.Owner = tt.owner
			for d, want := range map[policy.Disposition]finding{
				policy.Hold: tt.hold, policy.Release: tt.release, "": tt.hold, "nonsense": tt.hold,
			} {
				s := scene{pools: []reaper.Pool{poolOf(r)}, pods: tt.pods}
				s.policy = func(p *policy.Policy) { p.Pods.Unnamed = d }
				equal(t, "verdict under "+string(d), found(s.judge(t, noon)[0]), want)
			}
		})
	}
}

// Promise 2. Only an entry that has no namespace to ask about is held by rules
// that may be about it.
func TestEntryThatNamesASandboxOnlyFallsUnderEveryRuleThatMayMatch(t *testing.T) {
	r := webEntry()
	r.Owner = reaper.Owner{Sandbox: "s1"}
	for _, tt := range []struct {
		name   string
		policy func(*policy.Policy)
		want   finding
	}{
		{"some namespaces are excluded", func(p *policy.Policy) { p.Namespaces.Exclude = []string{"prod"} },
			finding{reaper.Held, reaper.OutOfScope, ""}},
		{"a rule holds some namespaces", func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Namespaces: []string{"prod"}}, Hold: true}}
		}, finding{reaper.Held, reaper.RuleHold, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := scene{pools: []reaper.Pool{poolOf(r)}}
			s.policy = func(p *policy.Policy) {
				p.Pods.Unnamed = policy.Release
				tt.policy(p)
			}
			equal(t, "verdict", found(s.judge(t, noon)[0]), tt.want)
		})
	}
}
