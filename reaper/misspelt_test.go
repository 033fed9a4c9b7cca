package reaper_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A misspelt protection protects nothing, so a run says that a name of the policy matches nothing,
// if it is nearly one that exists. The judge's tests prove which names are near.
func TestMisspeltNameInThePolicyIsWarnedOf(t *testing.T) {
	const warning = "namespaces.exclude[1]: paymnets matches the namespace of no pod and no allocation that was listed: did you mean payments?"
	has := func(found census.Presence) func(context.Context, string) census.Presence {
		return func(context.Context, string) census.Presence { return found }
	}
	h := newHarness(fixedStore{poolOf(webAllocation())})
	h.pods.Add(census.Pod{Ref: ipam.PodRef{Namespace: "payments", Name: "web-0"}})
	h.policy.DryRun = new(true)
	h.policy.Namespaces.Exclude = []string{"kube-*", "paymnets"}
	h.policy.Rules = []policy.Rule{{Match: policy.Match{Backends: []string{"fixed", "cal*"}}}}
	for _, tt := range []struct {
		name       string
		namespaces func(context.Context, string) census.Presence
		want       bool
	}{
		{"there is no such namespace", has(census.Absent), true},
		{"it is not known whether there is one", has(census.Unknown), true},
		{"nothing says which there are", nil, true},
		{"the cluster has that namespace", has(census.Present), false},
	} {
		h.change = func(o *reaper.Options) { o.HasNamespace = tt.namespaces }
		equal(t, "warned where "+tt.name, strings.Contains(strings.Join(h.run(t).Warnings, "\n"), warning), tt.want)
	}

	// Every pattern counts that matches nothing, even if nothing is near it.
	unmatched, err := reaper.Unmatched(t.Context(), h.options())
	var got []string
	for _, u := range unmatched {
		got = append(got, u.At)
	}
	equal(t, "error", err, nil)
	equal(t, "unmatched", got, []string{"namespaces.exclude[0]", "namespaces.exclude[1]", "rules[0].match.backends[1]"})
}
