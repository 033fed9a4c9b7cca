package policy_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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
			got := p.Compile().Terms(policy.Subject{Namespace: tt.pod[0], Pod: tt.pod[1], Backend: tt.pod[2]})
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
		{"rules about pools and nodes are not about it", "rules: [{match: {pools: ['*']}, hold: true}, {match: {nodes: ['*']}, hold: true}]", plain},
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
			if diff := cmp.Diff(tt.want, p.Compile().Terms(policy.Subject{Backend: "calico", Podless: true, Placeless: true})); diff != "" {
				t.Errorf("terms (-want +got):\n%s", diff)
			}
		})
	}
}

// A rule for pools is sure of a pool by its names, those of its networks and its range. Of an attachment
// it is sure only if there is no other: any tenant may add one to a range.
func TestRuleForPools(t *testing.T) {
	block := policy.Pool{Names: []string{"10.1.2.0/26", "10.1.2.0/26", "default-pool"}, Range: netip.MustParsePrefix("10.1.2.0/26")}
	range24 := policy.Pool{Names: []string{"kube-system/10.9.0.0-24", "10.9.0.0-24", "10.9.0.0/24 (small)"}, Range: netip.MustParsePrefix("10.9.0.0/24"), Attachments: []string{"prod/underlay"}}
	shared := range24
	shared.Attachments = []string{"prod/underlay", "tenant/mine"}
	unsurveyed := policy.Pool{Names: range24.Names[:2], Range: range24.Range, Unsure: true}
	for _, tt := range []struct {
		name, patterns string
		pools          []policy.Pool
		want           string
	}{
		{"its name", "kube-system/10.9.0.0-24", []policy.Pool{range24}, "yes"},
		{"its name without the namespace", "10.9.0.0-*", []policy.Pool{range24}, "yes"},
		{"a star matches no slash", "kube*24", []policy.Pool{range24}, "no"},
		{"a star alone matches everything", "'*'", []policy.Pool{block, range24, unsurveyed}, "yes"},
		{"the name of its network", "default-*", []policy.Pool{block}, "yes"},
		{"its range", "10.1.2.0/26", []policy.Pool{block}, "yes"},
		{"a CIDR around it", "10.1.0.0/16", []policy.Pool{block}, "yes"},
		{"a CIDR inside it", "10.1.2.0/27", []policy.Pool{block}, "no"},
		{"another CIDR", "10.2.0.0/16", []policy.Pool{block}, "no"},
		{"another CIDR is sure even if names are not", "10.2.0.0/16", []policy.Pool{unsurveyed}, "no"},
		{"its only attachment", "prod/underlay", []policy.Pool{range24}, "yes"},
		{"another attachment", "prod/other", []policy.Pool{range24}, "no"},
		{"one of two attachments", "prod/underlay", []policy.Pool{shared}, "maybe"},
		{"both attachments", "'prod/*', tenant/mine", []policy.Pool{shared}, "yes"},
		{"a name that it may have", "prod/underlay", []policy.Pool{unsurveyed}, "maybe"},
		{"one of the pools in which it may be", "default-pool", []policy.Pool{block, range24}, "maybe"},
		{"none of the pools in which it may be", "third", []policy.Pool{block, range24}, "no"},
		{"no pool is known", "third", nil, "maybe"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			equalAnswer(t, "pools: ["+tt.patterns+"]", policy.Subject{Namespace: "a", Pod: "b", Backend: "c", Pools: tt.pools}, tt.want)
		})
	}
}

func TestRuleForNodes(t *testing.T) {
	for _, tt := range []struct {
		name, patterns string
		nodes          []string
		want           string
	}{
		{"its node", "'edge-*'", []string{"edge-1"}, "yes"},
		{"another node", "'edge-*'", []string{"core-1"}, "no"},
		{"all names of its node", "'edge-1*'", []string{"edge-1", "edge-1.example.com"}, "yes"},
		{"one of the nodes on which it may be", "edge-1", []string{"edge-1", "edge-2"}, "maybe"},
		{"none of the nodes on which it may be", "edge-3", []string{"edge-1", "edge-2"}, "no"},
		{"its node is unknown", "edge-1", nil, "maybe"},
		{"one of them is unknown", "edge-1", []string{"", "edge-1"}, "maybe"},
		{"every node, and its own is unknown", "'*'", nil, "yes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			equalAnswer(t, "nodes: ["+tt.patterns+"]", policy.Subject{Namespace: "a", Pod: "b", Backend: "c", Nodes: tt.nodes}, tt.want)
		})
	}
}

// equalAnswer tests whether a rule matches, may match or does not match, by what it does: it holds if it
// may, and shortens waits only if it surely does.
func equalAnswer(t *testing.T, match string, s policy.Subject, want string) {
	t.Helper()
	rule := func(terms string) policy.Terms {
		p, err := policy.Load([]byte(header+"rules: [{match: {"+match+"}, "+terms+"}]"), known)
		if err != nil {
			t.Fatal(err)
		}
		return p.Compile().Terms(s)
	}
	got := "no"
	switch {
	case rule("gracePeriod: 1m").Grace == time.Minute:
		got = "yes"
	case rule("hold: true").Hold:
		got = "maybe"
	}
	if got != want {
		t.Errorf("%s: %s, want %s", match, got, want)
	}
	if held := rule("hold: true").Hold; held != (want != "no") {
		t.Errorf("%s: held: %t", match, held)
	}
	if longer := rule("gracePeriod: 9h").Grace; longer != map[bool]time.Duration{true: 9 * time.Hour, false: 15 * time.Minute}[want != "no"] {
		t.Errorf("%s: a longer grace period is %v", match, longer)
	}
}

// What is not known of an allocation never gets it released earlier: its terms are at least as careful
// as those by any value that it may have.
func TestUnknownIsNeverLessCareful(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c"})
	patterns := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "[ab]", "*", "?"}), 0, 2)
	duration := rapid.Custom(func(r *rapid.T) *policy.Duration {
		return &policy.Duration{Duration: time.Duration(rapid.IntRange(0, 40).Draw(r, "minutes")) * time.Minute}
	})
	rapid.Check(t, func(r *rapid.T) {
		p := policy.Default()
		for range rapid.IntRange(1, 4).Draw(r, "rules") {
			p.Rules = append(p.Rules, policy.Rule{
				Match: policy.Match{Namespaces: patterns.Draw(r, "namespaces"), Pools: patterns.Draw(r, "pools"), Nodes: patterns.Draw(r, "nodes")},
				Hold:  rapid.Bool().Draw(r, "hold"), GracePeriod: duration.Draw(r, "grace"), MinAge: duration.Draw(r, "age"),
				Restored: rapid.SampledFrom([]policy.Disposition{"", policy.Hold, policy.Release}).Draw(r, "restored"),
			})
		}
		sure := policy.Subject{
			Namespace: name.Draw(r, "namespace"), Pod: "x", Backend: "y",
			Nodes: []string{name.Draw(r, "node")}, Pools: []policy.Pool{{Names: []string{name.Draw(r, "pool")}}},
		}
		less := sure
		switch rapid.IntRange(0, 5).Draw(r, "unknown") {
		case 0:
			less.Nodes = nil
		case 1:
			less.Pools = nil
		case 2:
			less.Nodes = []string{name.Draw(r, "other node"), sure.Nodes[0]}
		case 3:
			less.Pools = []policy.Pool{{Names: []string{name.Draw(r, "other pool")}}, sure.Pools[0]}
		case 4:
			less.Pools = []policy.Pool{{Unsure: true}}
		case 5:
			less.Namespace, less.Nodes, less.Pools = "", nil, nil
		}
		c := p.Compile()
		known, careful := c.Terms(sure), c.Terms(less)
		if known.Hold && !careful.Hold || known.Grace > careful.Grace || known.MinAge > careful.MinAge || !known.ReleaseRestored && careful.ReleaseRestored {
			r.Errorf("%+v by %+v, less than %+v by %+v", careful, less, known, sure)
		}
		for s, want := range map[*policy.Subject]policy.Terms{&sure: known, &less: careful} {
			for i, pool := range s.Pools {
				s.Pools[i] = c.Answered(pool)
			}
			if diff := cmp.Diff(want, c.Terms(*s)); diff != "" {
				r.Errorf("%+v, with the answers of all rules worked out before (-want +got):\n%s", *s, diff)
			}
		}
	})
}

// TestZeroValuesKeep proves the policy's part of promise 2.
func TestZeroValuesKeep(t *testing.T) {
	if (policy.Terms{}).InScope {
		t.Error("the zero Terms are in scope")
	}
	want := policy.Terms{Rule: -1}
	if diff := cmp.Diff(want, policy.Policy{}.Compile().Terms(policy.Subject{Namespace: "a", Pod: "b", Backend: "calico"})); diff != "" {
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
	if got := p.Compile().Terms(policy.Subject{Namespace: "a", Pod: "b", Backend: "calico"}); got.InScope || !got.Hold {
		t.Errorf("Terms = %+v, want out of scope and held", got)
	}
}
