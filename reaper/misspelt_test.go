package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
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
	rule := func(m policy.Match) policy.Policy {
		p := policy.Default()
		p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"x-*"}}}, {Match: m, Hold: true}}
		return p
	}
	const noNamespace, noPod = "matches the namespace of no pod and no allocation that was listed", "matches no pod and no allocation that was listed"
	for _, tt := range []struct {
		name       string
		policy     policy.Policy
		namespaces func(context.Context, string) (bool, error)
		want       string // the warning; empty if there is none
	}{
		{"a namespace", exclude("payments", "ifnra"), has(false, nil), "namespaces.exclude[1]: ifnra " + noNamespace + ": did you mean infra?"},
		{"the namespace of an allocation", exclude("paymnets"), has(false, nil), "namespaces.exclude[0]: paymnets " + noNamespace + ": did you mean payments?"},
		{"it is not known whether there is one", exclude("paymnets"), has(false, errors.New("forbidden")), "namespaces.exclude[0]: paymnets " + noNamespace + ": did you mean payments?"},
		{"nothing says which there are", exclude("paymnets"), nil, "namespaces.exclude[0]: paymnets " + noNamespace + ": did you mean payments?"},
		{"the cluster has that namespace", exclude("paymnets"), has(true, nil), ""},
		{"nothing is near", exclude("kube-system"), has(false, nil), ""},
		{"it exists", exclude("payments"), has(false, nil), ""},
		{"a wildcard", exclude("paymnet*"), has(false, nil), ""},
		{"the near one is in the list", exclude("payments", "payment"), has(false, nil), ""},
		{"the near one is in the list by a wildcard", exclude("pay*", "payment"), has(false, nil), ""},
		{"a rule's namespace", rule(policy.Match{Namespaces: []string{"infar"}}), has(false, nil), "rules[1].match.namespaces[0]: infar " + noNamespace + ": did you mean infra?"},
		{"a rule's pod", rule(policy.Match{Pods: []string{"bd-0"}}), has(true, nil), "rules[1].match.pods[0]: bd-0 " + noPod + ": did you mean db-0?"},
		{"the beginning of a pod's name", rule(policy.Match{Pods: []string{"gone"}}), has(true, nil), "rules[1].match.pods[0]: gone " + noPod + ": did you mean gone-1?"},
		{"a rule's pod that is gone", rule(policy.Match{Pods: []string{"gone-1"}}), has(true, nil), ""},
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

func TestPatternsThatMatchNothing(t *testing.T) {
	p := policy.Default()
	p.Namespaces = policy.Namespaces{Include: []string{"*", "pay*"}, Exclude: []string{"kube-*", "paymnets"}}
	p.Rules = []policy.Rule{{Match: policy.Match{Namespaces: []string{"inf*"}, Pods: []string{"web-?", "web-[1-9]"}, Backends: []string{"fixed", "cal*"}}}}
	unmatched, err := reaper.Unmatched(t.Context(), misspeltWorld(p).options())
	var got []string
	for _, u := range unmatched {
		got = append(got, u.String())
	}
	want := []string{
		"namespaces.exclude[0]: kube-* matches the namespace of no pod and no allocation that was listed",
		"namespaces.exclude[1]: paymnets matches the namespace of no pod and no allocation that was listed: did you mean payments?",
		"rules[0].match.pods[1]: web-[1-9] matches no pod and no allocation that was listed",
		"rules[0].match.backends[1]: cal* matches no store that was listed",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("unmatched: %v (-want +got):\n%s", err, diff)
	}
}

// In a large cluster, the names of a large policy would take minutes to compare.
func TestNearNamesOfALargePolicyAreBounded(t *testing.T) {
	pods := make([]census.Pod, 50_000)
	for i := range pods {
		pods[i].Ref = ipam.PodRef{Namespace: "payments", Name: fmt.Sprintf("web-%05d", i)}
	}
	p := policy.Default()
	for i := range 1000 {
		p.Rules = append(p.Rules, policy.Rule{Match: policy.Match{Pods: []string{fmt.Sprintf("wbe-%05d", i)}}})
	}
	meant := 0
	unmatched := judge.UnmatchedOf(p.Patterns(), ipam.Inventory{}, census.New(time.Now(), pods, nil))
	for _, u := range unmatched {
		if u.Meant != "" {
			meant++
		}
	}
	if len(unmatched) != 1000 || meant != 10 {
		t.Errorf("%d are unmatched and %d near a name, want 1000 and 10", len(unmatched), meant)
	}
}
