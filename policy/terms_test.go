package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
)

func TestTerms(t *testing.T) {
	const grace, age = 15 * time.Minute, 5 * time.Minute
	plain := policy.Terms{InScope: true, Rule: -1, Grace: grace, MinAge: age}
	outside := policy.Terms{Rule: -1, Grace: grace, MinAge: age}
	for _, tt := range []struct {
		name, yaml string
		pod        [3]string // namespace, name, backend
		want       policy.Terms
	}{
		{"everything is in scope by default", "", [3]string{"a", "b", "calico"}, plain},
		{"included by name", "namespaces: {include: [a]}", [3]string{"a", "b", "calico"}, plain},
		{"included by a glob", "namespaces: {include: [x, 'team-?']}", [3]string{"team-1", "b", "calico"}, plain},
		{"not included", "namespaces: {include: ['team-?']}", [3]string{"team-10", "b", "calico"}, outside},
		{"part of a name is no match", "namespaces: {include: [eam]}", [3]string{"team", "b", "calico"}, outside},
		{"excluded", "namespaces: {exclude: [x, 'kube-*']}", [3]string{"kube-system", "b", "calico"}, outside},
		{"exclude wins", "namespaces: {include: [kube-system], exclude: ['kube-*']}",
			[3]string{"kube-system", "b", "calico"}, outside},
		{"not excluded", "namespaces: {exclude: ['kube-*']}", [3]string{"kubes", "b", "calico"}, plain},

		{"times of the policy", "gracePeriod: 1h\nminAge: 0", [3]string{"a", "b", "calico"},
			policy.Terms{InScope: true, Rule: -1, Grace: time.Hour}},
		{"times of the rule", "rules: [{match: {pods: [b]}, gracePeriod: 0, minAge: 1m}]", [3]string{"a", "b", "calico"},
			policy.Terms{InScope: true, Rule: 0, MinAge: time.Minute}},
		{"what the rule leaves out is the policy's", "rules: [{match: {pods: [b]}}]", [3]string{"a", "b", "calico"},
			policy.Terms{InScope: true, Rule: 0, Grace: grace, MinAge: age}},
		{"a rule holds", "rules: [{match: {namespaces: [a]}, hold: true}]", [3]string{"a", "b", "calico"},
			policy.Terms{InScope: true, Hold: true, Rule: 0, Grace: grace, MinAge: age}},
		{"a rule takes nothing into scope", "namespaces: {include: [x]}\nrules: [{match: {namespaces: [a]}, gracePeriod: 1h}]",
			[3]string{"a", "b", "calico"}, policy.Terms{Rule: 0, Grace: time.Hour, MinAge: age}},

		{"the first rule wins", `
rules:
- {match: {namespaces: [z]}, hold: true}
- {match: {pods: [b*]}, gracePeriod: 1m}
- {match: {namespaces: [a]}, gracePeriod: 1h, minAge: 1h, hold: true}`, [3]string{"a", "b1", "calico"},
			policy.Terms{InScope: true, Rule: 1, Grace: time.Minute, MinAge: age}},
		{"all lists of a rule must match", `
rules:
- {match: {namespaces: [a], pods: [b], backends: [whereabouts]}, hold: true}
- {match: {namespaces: [a], pods: [c], backends: [calico]}, hold: true}
- {match: {namespaces: [c], pods: [b], backends: [calico]}, hold: true}`, [3]string{"a", "b", "calico"}, plain},
		{"one pattern of each list is enough", `
rules:
- {match: {namespaces: [x, a], pods: [x, b], backends: [overlapping, 'cal*']}, hold: true}`, [3]string{"a", "b", "calico"},
			policy.Terms{InScope: true, Hold: true, Rule: 0, Grace: grace, MinAge: age}},

		{"an unknown namespace is in scope if all are", "", [3]string{"", "", "calico"}, plain},
		{"an unknown namespace may not be included", "namespaces: {include: ['a*']}", [3]string{"", "", "calico"}, outside},
		{"an unknown namespace may be excluded", "namespaces: {exclude: ['a*']}", [3]string{"", "", "calico"}, outside},
		{"an unknown pod may be held", "rules: [{match: {namespaces: [a], pods: [x]}, hold: true}]", [3]string{"a", "", "calico"},
			policy.Terms{InScope: true, Hold: true, Rule: 0, Grace: grace, MinAge: age}},
		{"an unknown pod in another namespace is not held", "rules: [{match: {namespaces: [z], pods: [x]}, hold: true}]",
			[3]string{"a", "", "calico"}, plain},
		{"an unknown backend may be held", "rules: [{match: {backends: [calico]}, hold: true}]", [3]string{"a", "b", ""},
			policy.Terms{InScope: true, Hold: true, Rule: 0, Grace: grace, MinAge: age}},
		{"an unknown pod waits as long as any may", `
rules:
- {match: {pods: [v]}, gracePeriod: 1h, minAge: 1s}
- {match: {pods: [w]}, gracePeriod: 1m, minAge: 10m}
- {match: {pods: [x]}, gracePeriod: 1s, minAge: 1s}`, [3]string{"a", "", "calico"},
			policy.Terms{InScope: true, Rule: 0, Grace: time.Hour, MinAge: 10 * time.Minute}},
		{"an unknown pod waits no less than the policy says", "rules: [{match: {pods: [x]}, gracePeriod: 0, minAge: 0}]",
			[3]string{"a", "", "calico"}, policy.Terms{InScope: true, Rule: 0, Grace: grace, MinAge: age}},
		{"a rule for every pod decides for an unknown one", `
rules:
- {match: {pods: [x]}, gracePeriod: 2m, minAge: 0}
- {match: {pods: ["*"]}, gracePeriod: 1m, minAge: 1m}
- {match: {pods: [w]}, hold: true}`, [3]string{"a", "", "calico"},
			policy.Terms{InScope: true, Rule: 0, Grace: 2 * time.Minute, MinAge: time.Minute}},
		{"a rule ends the hold of what was restored", "rules: [{match: {pods: [b]}, restored: release}]", [3]string{"a", "b", "calico"},
			policy.Terms{InScope: true, Rule: 0, Grace: grace, MinAge: age, ReleaseRestored: true}},
		{"one rule that may match does not end it", "rules: [{match: {pods: [b]}, restored: release}]", [3]string{"a", "", "calico"},
			policy.Terms{InScope: true, Rule: 0, Grace: grace, MinAge: age}},
		{"all rules that may match end it", `
rules:
- {match: {pods: [b]}, restored: release}
- {match: {pods: ["*"]}, restored: release}`, [3]string{"a", "", "calico"},
			policy.Terms{InScope: true, Rule: 0, Grace: grace, MinAge: age, ReleaseRestored: true}},
		{"a rule that does not say so does not end it", `
rules:
- {match: {pods: [b]}, restored: hold}
- {match: {pods: ["*"]}, restored: release}`, [3]string{"a", "", "calico"},
			policy.Terms{InScope: true, Rule: 0, Grace: grace, MinAge: age}},
		{"the rule that holds an unknown pod is named", `
rules:
- {match: {pods: [x]}, gracePeriod: 1h}
- {match: {pods: [v]}, hold: true}
- {match: {pods: [w]}, hold: true}
- {match: {pods: [z]}}`, [3]string{"a", "", "calico"},
			policy.Terms{InScope: true, Hold: true, Rule: 1, Grace: time.Hour, MinAge: age}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := policy.Load([]byte(header+tt.yaml), known)
			if err != nil {
				t.Fatal(err)
			}
			got := p.Terms(tt.pod[0], tt.pod[1], tt.pod[2])
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Terms%q (-want +got):\n%s", tt.pod, diff)
			}
		})
	}
}

// Only rules that match by backend alone apply to a backend's own entry.
func TestBackendTerms(t *testing.T) {
	const grace, age = 15 * time.Minute, 5 * time.Minute
	plain := policy.Terms{InScope: true, Rule: -1, Grace: grace, MinAge: age}
	for _, tt := range []struct {
		name, yaml string
		want       policy.Terms
	}{
		{"the policy's", "", plain},
		{"no namespace speaks against it", "namespaces: {include: [a], exclude: [b]}", plain},
		{"a rule about pods is not about it", "rules: [{match: {pods: ['*']}, hold: true}]", plain},
		{"a rule about namespaces is not about it", "rules: [{match: {namespaces: ['*'], backends: [calico]}, hold: true}]", plain},
		{"a rule about another backend", "rules: [{match: {backends: [overlapping]}, hold: true}]", plain},
		{"the first rule about the backend", `
rules:
- {match: {pods: [a]}, hold: true}
- {match: {backends: ['cal*']}, gracePeriod: 1h}
- {match: {backends: [calico]}, hold: true}`, policy.Terms{InScope: true, Rule: 1, Grace: time.Hour, MinAge: age}},
		{"a rule ends the hold of what was restored", "rules: [{match: {backends: [calico]}, restored: release}]",
			policy.Terms{InScope: true, Rule: 0, Grace: grace, MinAge: age, ReleaseRestored: true}},
		{"a rule holds", "rules: [{match: {backends: [calico]}, hold: true, minAge: 1m}]",
			policy.Terms{InScope: true, Hold: true, Rule: 0, Grace: grace, MinAge: time.Minute}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := policy.Load([]byte(header+tt.yaml), known)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, p.BackendTerms("calico")); diff != "" {
				t.Errorf("terms (-want +got):\n%s", diff)
			}
		})
	}
}

// TestZeroValuesKeep proves the policy's part of promise 2.
func TestZeroValuesKeep(t *testing.T) {
	if (policy.Terms{}).InScope {
		t.Error("the zero Terms are in scope")
	}
	want := policy.Terms{Rule: -1}
	if diff := cmp.Diff(want, policy.Policy{}.Terms("a", "b", "calico")); diff != "" {
		t.Errorf("Terms of the zero Policy (-want +got):\n%s", diff)
	}
	if got := (policy.Policy{}).Pods.Superseded; got == policy.Release {
		t.Errorf("zero Disposition = %q", got)
	}
	if got := (policy.Policy{}).Nodes.Unreachable; got == policy.Release {
		t.Errorf("zero Disposition of nodes = %q", got)
	}
	if got := (policy.Policy{}).Protection.StatefulSets; got == policy.Ignore {
		t.Errorf("zero StatefulSetProtection = %q", got)
	}
	if got := policy.Default().Backends["calico"].Enabled; got != policy.Auto {
		t.Errorf("a backend that the policy does not name is %v, want auto", got)
	}
}

// A pattern that Load would refuse leads to the most careful terms.
func TestUnreadablePatternMayMatch(t *testing.T) {
	p := policy.Default()
	p.Namespaces.Exclude = []string{"a["}
	p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"["}}, Hold: true}}
	if got := p.Terms("a", "b", "calico"); got.InScope || !got.Hold {
		t.Errorf("Terms = %+v, want out of scope and held", got)
	}
}
