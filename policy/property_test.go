package policy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/policy"
)

// drawPolicy draws what a policy says about allocations.
func drawPolicy(t *rapid.T) policy.Policy {
	pattern := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9.*?-]{1,9}`),
		rapid.StringMatching(`[a-z]?\[\^?[a-f]-[g-z]\]\\[*?]`),
	)
	patterns := func(least int) []string { return rapid.SliceOfN(pattern, least, 3).Draw(t, "patterns") }
	duration := func() *policy.Duration {
		return &policy.Duration{Duration: time.Duration(rapid.Int64Range(0, int64(99_999*time.Hour)).Draw(t, "duration"))}
	}
	disposition := rapid.SampledFrom([]policy.Disposition{policy.Hold, policy.Release})
	rules := []policy.Rule{}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		r := policy.Rule{Hold: rapid.Bool().Draw(t, "hold")}
		if rapid.Bool().Draw(t, "restored") {
			r.Restored = disposition.Draw(t, "disposition of the restored")
		}
		r.Match.Namespaces = patterns(1)
		if rapid.Bool().Draw(t, "pods") {
			r.Match.Pods = patterns(0)
		}
		if rapid.Bool().Draw(t, "backends") {
			r.Match.Backends = []string{"cal*", "whereabouts"}
		}
		if rapid.Bool().Draw(t, "grace") {
			r.GracePeriod, r.MinAge = duration(), duration()
		}
		rules = append(rules, r)
	}
	p := policy.Default()
	p.GracePeriod, p.MinAge, p.Rules = duration(), duration(), rules
	p.Namespaces = policy.Namespaces{Include: patterns(1), Exclude: patterns(0)}
	return p
}

// TestUnknownNamesGetTheMostCarefulTerms compares an unknown name with every
// name that it may stand for.
func TestUnknownNamesGetTheMostCarefulTerms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		name := rapid.StringMatching(`[a-z0-9][a-z0-9.-]{0,3}`)
		namespace, pod := name.Draw(t, "namespace"), name.Draw(t, "pod")
		backend := rapid.SampledFrom(known).Draw(t, "backend").Name
		named := p.Terms(namespace, pod, backend)
		for _, unknown := range []policy.Terms{
			p.Terms("", pod, backend), p.Terms(namespace, "", backend), p.Terms("", "", backend), p.Terms("", "", ""),
		} {
			if unknown.InScope && !named.InScope || !unknown.Hold && named.Hold || unknown.ReleaseRestored && !named.ReleaseRestored ||
				unknown.Grace < named.Grace || unknown.MinAge < named.MinAge {
				t.Fatalf("the terms of an unknown name are %+v, and those of %s/%s are %+v", unknown, namespace, pod, named)
			}
		}
	})
}
