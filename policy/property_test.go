package policy_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/policy"
)

func TestMarshalledPolicyLoadsAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawPolicy(t)
		for name, marshal := range map[string]func(any) ([]byte, error){"JSON": json.Marshal, "YAML": yaml.Marshal} {
			data, err := marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := policy.Load(data, known)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("%s: %v (-want +got):\n%s\n%s", name, err, diff, data)
			}
		}
	})
}

// drawPolicy draws a policy as Load returns it.
func drawPolicy(t *rapid.T) policy.Policy {
	pattern := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9.*?-]{1,9}`),
		rapid.StringMatching(`[a-z]?\[\^?[a-f]-[g-z]\]\\[*?]`),
		// What YAML takes for something else if it is not in quotes.
		rapid.SampledFrom([]string{"no", "null", "1", "007", "1e3", "0x1f", ".5", ".nan", "-", "---", "...", "2001-01-01"}),
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
	backends := map[string]policy.Backend{}
	for _, k := range known {
		if !rapid.Bool().Draw(t, k.Name) {
			continue
		}
		b := policy.Backend{Enabled: rapid.SampledFrom([]policy.Switch{policy.Auto, policy.On, policy.Off}).Draw(t, "enabled")}
		if k.Settings != nil {
			b.Settings = &settings{Mode: rapid.SampledFrom([]string{"", "fast", "no"}).Draw(t, "mode")}
		}
		backends[k.Name] = b
	}
	return policy.Policy{
		APIVersion:  policy.APIVersion,
		Kind:        policy.Kind,
		DryRun:      new(rapid.Bool().Draw(t, "dryRun")),
		GracePeriod: duration(),
		MinAge:      duration(),
		Namespaces:  policy.Namespaces{Include: patterns(1), Exclude: patterns(0)},
		Rules:       rules,
		Backends:    backends,
		Evidence:    policy.Evidence{Annotations: rapid.SampledFrom([]policy.AnnotationEvidence{policy.KeepAnnotations, policy.OwnAnnotations}).Draw(t, "annotations")},
		Pods: policy.Pods{
			Finished:   disposition.Draw(t, "finished"),
			Stuck:      disposition.Draw(t, "stuck"),
			Superseded: disposition.Draw(t, "superseded"),
			Unnamed:    disposition.Draw(t, "unnamed"),
		},
		Nodes: policy.Nodes{Unreachable: disposition.Draw(t, "unreachable"), Unknown: disposition.Draw(t, "unknown")},
		Limits: policy.Limits{
			MaxReleases: new(rapid.IntRange(0, math.MaxInt32).Draw(t, "maxReleases")),
			MaxFraction: new(rapid.Float64Range(math.SmallestNonzeroFloat64, 1).Draw(t, "maxFraction")),
			MaxPodDrop:  new(rapid.Float64Range(math.SmallestNonzeroFloat64, 1).Draw(t, "maxPodDrop")),
			MinEntries:  new(rapid.IntRange(0, math.MaxInt32).Draw(t, "minEntries")),
		},
		Protection: policy.Protection{
			StatefulSets: rapid.SampledFrom([]policy.StatefulSetProtection{policy.OrdinalInRange, policy.Ignore}).Draw(t, "statefulSets"),
		},
		Journal: policy.Journal{Keep: new(rapid.IntRange(1, 100).Draw(t, "keep")), KeepFor: duration(), RestoreHold: duration()},
	}
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
