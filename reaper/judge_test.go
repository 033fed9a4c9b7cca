package reaper_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 1, 2.
func TestDecisionOnAllocationOfPod(t *testing.T) {
	hold := func(p *policy.Policy) {
		p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"w*"}}, Hold: true}}
	}
	exclude := func(p *policy.Policy) { p.Namespaces.Exclude = []string{"default"} }
	for _, tt := range []struct {
		name   string
		entry  func(*reaper.Allocation)
		policy func(*policy.Policy)
		pods   []reaper.Pod
		want   decision
	}{
		{
			name: "its pod shows the address",
			pods: []reaper.Pod{showing(web, ip1)},
			want: decision{reaper.InUse, reaper.PodPresent, ""},
		}, {
			name: "its pod exists and shows nothing yet",
			pods: []reaper.Pod{{Ref: web, AddressUnknown: true}},
			want: decision{reaper.InUse, reaper.PodPresent, ""},
		}, {
			name: "its pod exists and shows an address of another store",
			pods: []reaper.Pod{showing(web, netip.MustParseAddr("192.0.2.1"))},
			want: decision{reaper.InUse, reaper.PodPresent, ""},
		}, {
			name: "another pod shows the address",
			pods: []reaper.Pod{showing(other, ip1)},
			want: decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
		}, {
			name: "another pod shows the address on another interface",
			pods: []reaper.Pod{{Ref: other, Addresses: []netip.Addr{ip1}, Interfaces: on("eth7", ip1)}},
			want: decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
		}, {
			name: "its pod exists, and another one shows the address",
			pods: []reaper.Pod{showing(web), showing(other, ip1)},
			want: decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
		}, {
			name: "its pod does not exist",
			pods: []reaper.Pod{showing(other, ip2)},
			want: decision{reaper.Suspected, reaper.PodAbsent, ""},
		}, {
			name: "a pod of that name exists in another namespace",
			pods: []reaper.Pod{{Ref: reaper.PodRef{Namespace: "prod", Name: "web"}}},
			want: decision{reaper.Suspected, reaper.PodAbsent, ""},
		}, {
			name:  "a pod of that name exists, with another UID",
			entry: func(a *reaper.Allocation) { a.Owner.UID = "old" },
			pods:  []reaper.Pod{{Ref: web, UID: "new"}},
			want:  decision{reaper.Suspected, reaper.PodReplaced, ""},
		}, {
			name:  "a pod with another UID shows the address",
			entry: func(a *reaper.Allocation) { a.Owner.UID = "old" },
			pods:  []reaper.Pod{{Ref: web, UID: "new", Addresses: []netip.Addr{ip1}}},
			want:  decision{reaper.InUse, reaper.PodPresent, ""},
		}, {
			name: "the store does not know the UID",
			pods: []reaper.Pod{{Ref: web, UID: "new"}},
			want: decision{reaper.InUse, reaper.PodPresent, ""},
		}, {
			name:  "the pod's UID is not known",
			entry: func(a *reaper.Allocation) { a.Owner.UID = "old" },
			pods:  []reaper.Pod{{Ref: web}},
			want:  decision{reaper.InUse, reaper.PodPresent, ""},
		}, {
			name:   "out of the policy's namespaces",
			policy: exclude,
			want:   decision{reaper.Held, reaper.OutOfScope, "namespaces.exclude has default"},
		}, {
			name:   "out of the policy's namespaces and in use",
			policy: exclude,
			pods:   []reaper.Pod{showing(web, ip1)},
			want:   decision{reaper.InUse, reaper.PodPresent, ""},
		}, {
			name:   "a rule holds it",
			policy: hold,
			want:   decision{reaper.Held, reaper.RuleHold, "rules[0] holds what it matches: pods w*"},
		}, {
			name:   "a rule holds another pod's",
			entry:  func(a *reaper.Allocation) { a.Owner.Pod = other },
			policy: hold,
			want:   decision{reaper.Suspected, reaper.PodAbsent, ""},
		}, {
			name:  "the store could not notice that it changed hands",
			entry: func(a *reaper.Allocation) { a.Token = "" },
			want:  decision{reaper.Held, reaper.NoToken, ""},
		}, {
			name:  "without a token and in use",
			entry: func(a *reaper.Allocation) { a.Token = "" },
			pods:  []reaper.Pod{showing(web, ip1)},
			want:  decision{reaper.InUse, reaper.PodPresent, ""},
		}, {
			name:  "it could not be understood, although a pod shows its address",
			entry: func(a *reaper.Allocation) { a.Unreadable = "no JSON" },
			pods:  []reaper.Pod{showing(web, ip1)},
			want:  decision{reaper.Held, reaper.Unreadable, "no JSON"},
		}, {
			name:  "it has no address",
			entry: func(a *reaper.Allocation) { a.IP = netip.Addr{} },
			want:  decision{reaper.Held, reaper.Unreadable, "the allocation has no address"},
		}, {
			name:  "its address is an IPv4 address in the clothes of IPv6",
			entry: func(a *reaper.Allocation) { a.IP = netip.MustParseAddr("::ffff:10.0.0.1") },
			pods:  []reaper.Pod{showing(other, ip1)},
			want:  decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
		}, {
			name:  "its address has a zone",
			entry: func(a *reaper.Allocation) { a.IP = netip.MustParseAddr("fd00::1%eth0") },
			pods:  []reaper.Pod{showing(other, netip.MustParseAddr("fd00::1"))},
			want:  decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			if tt.entry != nil {
				tt.entry(&a)
			}
			decisions := situation{policy: tt.policy, pools: []reaper.Pool{poolOf(a)}, pods: tt.pods}.judge(t, noon)
			equal(t, "verdict", decisionOf(decisions[0]), tt.want)
		})
	}
}

// Promise 2.
func TestDecisionByAge(t *testing.T) {
	for _, tt := range []struct {
		name  string
		entry func(*reaper.Allocation)
		want  decision
	}{
		{"one second too young", func(a *reaper.Allocation) { a.Created = noon.Add(-5*time.Minute + time.Second) },
			decision{reaper.Held, reaper.TooYoung, "it is too young until 2026-03-01T12:00:01Z"}},
		{"old enough", func(a *reaper.Allocation) { a.Created = noon.Add(-5 * time.Minute) },
			decision{reaper.Suspected, reaper.PodAbsent, ""}},
		{"created in the future", func(a *reaper.Allocation) { a.Created = noon.Add(time.Hour) },
			decision{reaper.Suspected, reaper.PodAbsent, ""}},
		{"the store does not tell", func(*reaper.Allocation) {},
			decision{reaper.Suspected, reaper.PodAbsent, ""}},
		{"young, but an earlier run had begun to release it", func(a *reaper.Allocation) { a.Created, a.Interrupted = noon, true },
			decision{reaper.Orphaned, reaper.PodAbsent, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			tt.entry(&a)
			decisions := situation{pools: []reaper.Pool{poolOf(a)}}.judge(t, noon)
			equal(t, "verdict", decisionOf(decisions[0]), tt.want)
		})
	}
}

// Promise 1. An interrupted release proves nothing about the owner now.
func TestInterruptedAllocationIsJudgedLikeAnyOther(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy func(*policy.Policy)
		pods   []reaper.Pod
		want   decision
	}{
		{"its pod is back", nil, []reaper.Pod{{Ref: web}}, decision{reaper.InUse, reaper.PodPresent, ""}},
		{"another pod has the address", nil, []reaper.Pod{showing(other, ip1)}, decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}},
		{"a rule holds it now", func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"web"}}, Hold: true}}
		}, nil, decision{reaper.Held, reaper.RuleHold, "rules[0] holds what it matches: pods web"}},
		{"its pod is still gone", nil, nil, decision{reaper.Orphaned, reaper.PodAbsent, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Interrupted = true
			decisions := situation{policy: tt.policy, pools: []reaper.Pool{poolOf(a)}, pods: tt.pods}.judge(t, noon)
			equal(t, "verdict", decisionOf(decisions[0]), tt.want)
		})
	}
}

// Promise 7.
func TestDecisionsComeOneForEachAllocationInOrder(t *testing.T) {
	first, second := poolOf(webAllocation(), webAllocation()), poolOf(webAllocation())
	first.Allocations[1].Key, second.Name = "2", "second"
	s := situation{pools: []reaper.Pool{first, second}}
	var got []string
	for _, d := range s.judge(t, noon) {
		got = append(got, d.Allocation.Backend+" "+d.Allocation.Pool+" "+d.Allocation.Key)
	}
	equal(t, "order", got, []string{"fixed pool 1", "fixed pool 2", "fixed second 1"})
}
