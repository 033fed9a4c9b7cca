package reaper_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 2. A StatefulSet keeps the addresses of the pods that it brings back, unless the policy
// ignores that. It does not keep what no pod adopts.
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
