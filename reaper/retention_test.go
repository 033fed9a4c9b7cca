package reaper_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 2.
func TestStatefulSetKeepsWhatItsPodsComeBackFor(t *testing.T) {
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
			r := webEntry()
			r.Owner.Pod.Name = tt.pod
			retained := finding{reaper.Held, reaper.Retained, "its StatefulSet brings the pod back"}
			released := finding{reaper.Suspected, reaper.PodAbsent, ""}
			want := released
			if tt.want {
				want = retained
			}
			s := scene{units: []reaper.Unit{pool(r)}, sets: tt.sets}
			equal(t, "verdict", found(s.judge(t, noon)[0]), want)

			s.policy = func(p *policy.Policy) { p.Retention.StatefulSets = policy.Ignore }
			equal(t, "verdict where the policy ignores them", found(s.judge(t, noon)[0]), released)
		})
	}
}

// A word that the judge does not know must not make it forget retention.
func TestUnknownRetentionKeeps(t *testing.T) {
	r := webEntry()
	r.Owner.Pod.Name = "db-0"
	s := scene{units: []reaper.Unit{pool(r)}, sets: []reaper.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}}}
	s.policy = func(p *policy.Policy) { p.Retention.StatefulSets = "" }
	equal(t, "standing", s.judge(t, noon)[0].Standing, reaper.Held)
}
