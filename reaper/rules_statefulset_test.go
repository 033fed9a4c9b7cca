package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 2.
func TestStatefulSetKeepsTheAddressesOfItsPods(t *testing.T) {
	db := reaper.StatefulSet{Namespace: "default", Name: "db", Replicas: 3}
	shifted := reaper.StatefulSet{Namespace: "default", Name: "db", Start: 5, Replicas: 2}
	dashed := reaper.StatefulSet{Namespace: "default", Name: "db-0", Replicas: 1}
	for _, tt := range []struct {
		name string
		pod  string
		sets []reaper.StatefulSet
		want bool
	}{
		{"the first ordinal", "db-0", []reaper.StatefulSet{db}, true},
		{"the last ordinal", "db-2", []reaper.StatefulSet{db}, true},
		{"one too many", "db-3", []reaper.StatefulSet{db}, false},
		{"below the start", "db-4", []reaper.StatefulSet{shifted}, false},
		{"at the start", "db-5", []reaper.StatefulSet{shifted}, true},
		{"the last from the start", "db-6", []reaper.StatefulSet{shifted}, true},
		{"beyond the start", "db-7", []reaper.StatefulSet{shifted}, false},
		{"scaled to zero", "db-0", []reaper.StatefulSet{{Namespace: "default", Name: "db"}}, false},
		{"a leading zero is not how it writes ordinals", "db-00", []reaper.StatefulSet{db}, false},
		{"a sign neither", "db-+1", []reaper.StatefulSet{db}, false},
		{"no number", "db-x", []reaper.StatefulSet{db}, false},
		{"no ordinal", "db", []reaper.StatefulSet{db}, false},
		{"an empty ordinal", "db-", []reaper.StatefulSet{db}, false},
		{"a number that no machine counts to", "db-99999999999999999999999999", []reaper.StatefulSet{db}, false},
		{"a number that could wrap around", "db-18446744073709551616", []reaper.StatefulSet{db}, false},
		{"the largest number", "db-9223372036854775807", []reaper.StatefulSet{db}, false},
		{"in another namespace", "db-0", []reaper.StatefulSet{{Namespace: "prod", Name: "db", Replicas: 3}}, false},
		{"another set", "db-0", []reaper.StatefulSet{{Namespace: "default", Name: "db2", Replicas: 3}}, false},
		{"a set whose name ends like an ordinal", "db-0-0", []reaper.StatefulSet{dashed}, true},
		{"the namesake of that set's name", "db-0", []reaper.StatefulSet{dashed}, false},
		{"one of several sets", "db-6", []reaper.StatefulSet{dashed, shifted}, true},
		{"no set", "db-0", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Owner.Pod.Name = tt.pod
			retained := decision{reaper.Held, reaper.Retained, "its StatefulSet brings the pod back"}
			released := decision{reaper.Suspected, reaper.PodAbsent, ""}
			want := released
			if tt.want {
				want = retained
			}
			s := situation{pools: []reaper.Pool{poolOf(a)}, sets: tt.sets}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), want)

			s.policy = func(p *policy.Policy) { p.Protection.StatefulSets = policy.Ignore }
			equal(t, "verdict where the policy ignores them", decisionOf(s.judge(t, noon)[0]), released)
		})
	}
}

// An unknown value in the policy keeps.
func TestUnknownPolicyForStatefulSetsKeeps(t *testing.T) {
	a := webAllocation()
	a.Owner.Pod.Name = "db-0"
	s := situation{pools: []reaper.Pool{poolOf(a)}, sets: []reaper.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}}}
	s.policy = func(p *policy.Policy) { p.Protection.StatefulSets = "" }
	equal(t, "verdict", s.judge(t, noon)[0].Verdict, reaper.Held)
}

// Promise 2, 4. The StatefulSet may change between the runs. That of the current run
// decides, and the grace period counts from when it no longer wants the pod.
func TestStatefulSetOfTheCurrentRunDecides(t *testing.T) {
	set := func(replicas int) reaper.StatefulSet {
		return reaper.StatefulSet{Namespace: "default", Name: "db", Replicas: replicas}
	}
	for _, tt := range []struct {
		name   string
		second []reaper.StatefulSet
		want   reaper.Reason // of the second run, and what it leads to
	}{
		{"as it was", []reaper.StatefulSet{set(3)}, reaper.Retained},
		{"scaled down", []reaper.StatefulSet{set(2)}, reaper.PodAbsent},
		{"scaled up", []reaper.StatefulSet{set(9)}, reaper.Retained},
		{"deleted", nil, reaper.PodAbsent},
		{"deleted and created again", []reaper.StatefulSet{set(3)}, reaper.Retained},
		{"created again, smaller", []reaper.StatefulSet{set(1)}, reaper.PodAbsent},
		{"created again, with other ordinals", []reaper.StatefulSet{{Namespace: "default", Name: "db", Start: 5, Replicas: 3}}, reaper.PodAbsent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := backendtest.NewMemory("memory")
			h := newHarness(m.Backend())
			h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
			h.addPods(t, m, "live-1", "db-2")
			h.pods.AddSets(set(3))
			equal(t, "reason at first", h.run(t).Entries[1].Reason, reaper.Retained)

			h.pods = &backendtest.Pods{}
			h.pods.Add(reaper.Pod{Ref: app("live-1").Pod})
			h.pods.AddSets(tt.second...)
			h.now = noon.Add(24 * time.Hour)
			e := h.run(t).Entries[1]
			equal(t, "reason", e.Reason, tt.want)
			equal(t, "outcome", e.Outcome, reaper.Kept)
			h.now = noon.Add(25 * time.Hour)
			want := reaper.Kept
			if tt.want == reaper.PodAbsent {
				want = reaper.Released
			}
			equal(t, "outcome an hour later", h.run(t).Entries[1].Outcome, want)
		})
	}
}

// Promise 1, 4. The second look uses the StatefulSets of the first.
func TestConfirmRemembersTheStatefulSets(t *testing.T) {
	for _, due := range []int{1, 1000} {
		a := allocations(1)[0]
		look := newSecondLook(t, &backendtest.Pods{}, a)
		look.census = reaper.NewCensus(noon, nil, []reaper.StatefulSet{{Namespace: "default", Name: "app", Replicas: 1}})
		ws, errs := look.confirmer(due).Confirm(t.Context(), look.orphans)
		refused(t, ws[0], errs[0], reaper.ErrKept)
	}
}
