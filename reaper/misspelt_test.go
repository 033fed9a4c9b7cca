package reaper_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// misspeltWorld has the pods payments/web-0 and infra/db-0, and a leaked address of payments/gone-1.
func misspeltWorld(p policy.Policy) *harness {
	a := webAllocation()
	a.Owner.Pod = ipam.PodRef{Namespace: "payments", Name: "gone-1"}
	h := newHarness(fixedStore{poolOf(a)})
	h.pods.Add(census.Pod{Ref: ipam.PodRef{Namespace: "payments", Name: "web-0"}}, census.Pod{Ref: ipam.PodRef{Namespace: "infra", Name: "db-0"}})
	p.DryRun = new(true)
	h.policy = p
	return h
}

// A misspelt protection protects nothing, so a run says that a name of the policy matches nothing,
// if it is nearly one that exists.
func TestMisspeltNameInThePolicyIsWarnedOf(t *testing.T) {
	has := func(found bool, err error) func(context.Context, string) (bool, error) {
		return func(context.Context, string) (bool, error) { return found, err }
	}
	exclude := func(names ...string) policy.Policy {
		p := policy.Default()
		p.Namespaces.Exclude = names
		return p
	}
	const noNamespace = "matches the namespace of no pod and no allocation that was listed"
	for _, tt := range []struct {
		name       string
		policy     policy.Policy
		namespaces func(context.Context, string) (bool, error)
		want       string // the warning; empty if there is none
	}{
		{"a namespace", exclude("payments", "ifnra"), has(false, nil), "namespaces.exclude[1]: ifnra " + noNamespace + ": did you mean infra?"},
		{"it is not known whether there is one", exclude("paymnets"), has(false, errors.New("forbidden")), "namespaces.exclude[0]: paymnets " + noNamespace + ": did you mean payments?"},
		{"nothing says which there are", exclude("paymnets"), nil, "namespaces.exclude[0]: paymnets " + noNamespace + ": did you mean payments?"},
		{"the cluster has that namespace", exclude("paymnets"), has(true, nil), ""},
		{"it exists", exclude("payments"), has(false, nil), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := misspeltWorld(tt.policy)
			h.change = func(o *reaper.Options) { o.HasNamespace = tt.namespaces }
			var got []string
			for _, warning := range h.run(t).Warnings {
				if strings.Contains(warning, " matches ") {
					got = append(got, warning)
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// Every pattern counts that matches nothing of the stores and the pods, even if nothing is near it.
func TestPatternsAreComparedWithWhatIsListed(t *testing.T) {
	p := policy.Default()
	p.Namespaces.Exclude = []string{"kube-*", "paymnets", "infra"}
	p.Rules = []policy.Rule{{Match: policy.Match{Backends: []string{"fixed", "cal*"}}}}
	unmatched, err := reaper.Unmatched(t.Context(), misspeltWorld(p).options())
	var got []string
	for _, u := range unmatched {
		got = append(got, u.At)
	}
	equal(t, "error", err, nil)
	equal(t, "unmatched", got, []string{"namespaces.exclude[0]", "namespaces.exclude[1]", "rules[0].match.backends[1]"})
}
