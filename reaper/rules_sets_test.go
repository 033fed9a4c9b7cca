package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 2. A StatefulSet keeps the addresses of the pods that it brings back, unless the policy
// ignores that. What no pod adopts it does not keep.
func TestStatefulSetKeepsTheAddressesOfItsPods(t *testing.T) {
	db := census.StatefulSet{Namespace: "default", Name: "db", Replicas: 3}
	shifted := census.StatefulSet{Namespace: "default", Name: "db", Start: 5, Replicas: 2}
	dashed := census.StatefulSet{Namespace: "default", Name: "db-0", Replicas: 1}
	for _, tt := range []struct {
		name string
		pod  string
		set  census.StatefulSet
		want bool
	}{
		{"the first ordinal", "db-0", db, true},
		{"one too many", "db-3", db, false},
		{"below the start", "db-4", shifted, false},
		{"at the start", "db-5", shifted, true},
		{"the last from the start", "db-6", shifted, true},
		{"beyond the start", "db-7", shifted, false},
		{"scaled to zero", "db-0", census.StatefulSet{Namespace: "default", Name: "db"}, false},
		{"a leading zero is not how it writes ordinals", "db-00", db, false},
		{"no number", "db-x", db, false},
		{"a number that could wrap around", "db-18446744073709551616", db, false},
		{"in another namespace", "db-0", census.StatefulSet{Namespace: "prod", Name: "db", Replicas: 3}, false},
		{"a set whose name ends like an ordinal", "db-0-0", dashed, true},
		{"the namesake of that set's name", "db-0", dashed, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := map[policy.StatefulSetProtection]decision{policy.Ignore: absent, "": absent}
			if tt.want {
				want[""] = stays // an unknown value in the policy keeps
			}
			for value, want := range want {
				s := given(entry(func(a *ipam.Allocation) { a.Owner.Pod.Name = tt.pod }), sets(tt.set),
					terms(func(p *policy.Policy) { p.Protection.StatefulSets = value }))
				equal(t, "verdict under "+string(value), decisionOf(s.judge(t, noon)[0]), want)
			}
			s := given(entry(func(a *ipam.Allocation) { a.Owner.Pod.Name, a.NeverAdopted = tt.pod, true }), sets(tt.set))
			equal(t, "verdict on what no pod adopts", decisionOf(s.judge(t, noon)[0]), absent)
		})
	}
}

// Promise 2, 4. The StatefulSet of the current run decides, and the grace period counts from
// when it no longer wants the pod.
func TestStatefulSetOfTheCurrentRunDecides(t *testing.T) {
	for name, tt := range map[string]struct {
		replicas int
		want     judge.Reason
	}{"as it was": {3, judge.Retained}, "scaled down": {2, judge.PodAbsent}} {
		t.Run(name, func(t *testing.T) {
			m := backendtest.NewMemory("memory")
			h := newHarness(m.Backend())
			h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
			h.addPods(t, m, "live-1", "db-2")
			set := census.StatefulSet{Namespace: "default", Name: "db", Replicas: 3}
			h.pods.AddSets(set)
			equal(t, "reason at first", h.run(t).Entries[1].Reason, judge.Retained)

			h.pods = &backendtest.Pods{}
			h.pods.Add(census.Pod{Ref: app("live-1").Pod})
			set.Replicas = tt.replicas
			h.pods.AddSets(set)
			h.now = noon.Add(24 * time.Hour)
			e := h.run(t).Entries[1]
			equal(t, "reason", e.Reason, tt.want)
			equal(t, "outcome", e.Outcome, report.Kept)
			h.now = noon.Add(25 * time.Hour)
			want := report.Kept
			if tt.want == judge.PodAbsent {
				want = report.Released
			}
			equal(t, "outcome an hour later", h.run(t).Entries[1].Outcome, want)
		})
	}
}
