package policy_test

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/policy"
)

func TestWarningsOfAPolicy(t *testing.T) {
	const shadowed = ": rules[0] comes first and matches all that it matches, so it matters at most for allocations of which a name is unknown"
	for _, tt := range []struct {
		name, yaml string
		want       []string
	}{
		{"nothing", "", nil},
		{"everything is excluded", `namespaces: {exclude: [a, "*"]}`,
			[]string{"namespaces.exclude[1]: * excludes every namespace, so no pod's address is released"}},
		{"everything with another pattern is not", `namespaces: {exclude: ["*-*", "?"]}`, nil},
		{"hold beside terms", "rules: [{match: {pods: [a]}, hold: true, gracePeriod: 1h, minAge: 1h, restored: release}]", []string{
			"rules[0]: hold is true, so nothing is released and gracePeriod does not matter",
			"rules[0]: hold is true, so nothing is released and minAge does not matter",
			"rules[0]: hold is true, so nothing is released and restored does not matter",
		}},
		{"terms without hold", "rules: [{match: {pods: [a]}, hold: false, gracePeriod: 1h}]", nil},
		{"the same rule", "rules: [{match: {pods: [a]}}, {match: {pods: [a]}}]", []string{"rules[1]" + shadowed}},
		{"fewer lists first", "rules: [{match: {namespaces: [a]}}, {match: {namespaces: [a], pods: [b]}}]", []string{"rules[1]" + shadowed}},
		{"more lists first", "rules: [{match: {namespaces: [a], pods: [b]}}, {match: {namespaces: [a]}}]", nil},
		{"all names first", `rules: [{match: {pods: ["*"]}}, {match: {backends: [calico]}}]`, []string{"rules[1]" + shadowed}},
		{"a wildcard first", `rules: [{match: {namespaces: ["db-*"]}}, {match: {namespaces: ["db-a", "db-*-b"]}}]`, []string{"rules[1]" + shadowed}},
		{"a wildcard for one of two", `rules: [{match: {namespaces: ["db-*"]}}, {match: {namespaces: ["db-a", "web"]}}]`, nil},
		{"a wildcard last", `rules: [{match: {namespaces: ["db-a"]}}, {match: {namespaces: ["db-*"]}}]`, nil},
		{"a set that has a letter of the wildcard", `rules: [{match: {namespaces: ["*a*"]}}, {match: {namespaces: ["[a-c]x"]}}]`, nil},
		{"the same CIDR", "rules: [{match: {pools: [10.0.0.0/8]}}, {match: {pools: [10.0.0.0/8], nodes: [a]}}]", []string{"rules[1]" + shadowed}},
		{"a CIDR for other pools than a wildcard", "rules: [{match: {pools: ['10.0.0.*/8']}}, {match: {pools: [10.0.0.0/8]}}]", nil},
		{"fewer nodes first", "rules: [{match: {nodes: [a]}}, {match: {nodes: ['*']}}]", nil},
		{"not the one before, but an earlier one", `rules: [{match: {pods: ["a*"]}}, {match: {pods: [b]}}, {match: {pods: [ab]}}]`, []string{"rules[2]" + shadowed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := policy.Load([]byte(header+tt.yaml), known)
			if diff := cmp.Diff(tt.want, p.Warnings()); diff != "" || err != nil {
				t.Errorf("warnings: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// What a rule is said to be shadowed for is so: each name that its pattern matches, the earlier
// rule's matches too.
func TestShadowedPatternMatchesNothingOfItsOwn(t *testing.T) {
	pattern := rapid.StringMatching(`([ab*?]|\[ab\]|\[\^a\]|\\\\a){1,4}`)
	name := rapid.StringMatching(`[abc]{1,5}`)
	rapid.Check(t, func(r *rapid.T) {
		outer, inner := pattern.Draw(r, "earlier"), pattern.Draw(r, "later")
		p := policy.Default()
		p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{outer}}}, {Match: policy.Match{Pods: []string{inner}}}}
		if len(p.Warnings()) == 0 {
			return
		}
		for range 20 {
			n := name.Draw(r, "name")
			within, errIn := path.Match(inner, n)
			covered, errOut := path.Match(outer, n)
			if within && !covered || errIn != nil || errOut != nil {
				r.Fatalf("%s matches %s, and %s does not: %v, %v", inner, n, outer, errIn, errOut)
			}
		}
	})
}

func TestPatternsHaveTheirFields(t *testing.T) {
	p, err := policy.Load([]byte(header+`
namespaces: {include: ["*"], exclude: [a]}
rules: [{match: {namespaces: [b]}}, {match: {pods: ["c-[0-9]", d], backends: ["*"]}}]
`), known)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range p.Patterns() {
		got = append(got, one.At+" "+one.Text+map[bool]string{true: " exact"}[one.Exact()]+map[bool]string{true: " everything"}[one.Everything()])
	}
	want := []string{
		"namespaces.include[0] * everything", "namespaces.exclude[0] a exact", "rules[0].match.namespaces[0] b exact",
		"rules[1].match.pods[0] c-[0-9]", "rules[1].match.pods[1] d exact", "rules[1].match.backends[0] * everything",
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		t.Errorf("patterns (-want +got):\n%s", diff)
	}
}
