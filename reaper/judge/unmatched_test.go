package judge_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// unmatchedBy says which of the patterns match nothing where there are the pods payments/web-0 and
// infra/db-0, and a leaked address of payments/gone-1.
func unmatchedBy(t *testing.T, patterns []policy.Pattern) []string {
	t.Helper()
	a := webAllocation()
	a.Owner.Pod = ipam.PodRef{Namespace: "payments", Name: "gone-1"}
	a.Owner.Node = "edge-1"
	inv := inventory(t, fixedStore{poolOf(a)})
	inv.Listings[0].Pools[0].Range = netip.MustParsePrefix("10.0.0.0/24")
	inv.Listings[0].Networks = []ipam.Network{{Name: "small-range", Attachments: []string{"prod/underlay"}}}
	pods := censusOf(census.Pod{Ref: ipam.PodRef{Namespace: "payments", Name: "web-0"}}, census.Pod{Ref: ipam.PodRef{Namespace: "infra", Name: "db-0"}})
	var says []string
	for _, u := range judge.UnmatchedOf(patterns, inv, pods) {
		says = append(says, u.String())
	}
	return says
}

// A name that is nearly one that exists may be misspelt. One that another pattern of the policy
// matches is not meant.
func TestNameThatIsMeantByAMisspeltOne(t *testing.T) {
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
		name   string
		policy policy.Policy
		want   string // what is said of a name with a near one; empty if there is none
	}{
		{"the namespace of an allocation", exclude("paymnets"), "namespaces.exclude[0]: paymnets " + noNamespace + ": did you mean payments?"},
		{"nothing is near", exclude("kube-system"), ""},
		{"a wildcard", exclude("paymnet*"), ""},
		{"the near one is in the list", exclude("payments", "payment"), ""},
		{"the near one is in the list by a wildcard", exclude("pay*", "payment"), ""},
		{"a rule's namespace", rule(policy.Match{Namespaces: []string{"infar"}}), "rules[1].match.namespaces[0]: infar " + noNamespace + ": did you mean infra?"},
		{"a rule's pod", rule(policy.Match{Pods: []string{"bd-0"}}), "rules[1].match.pods[0]: bd-0 " + noPod + ": did you mean db-0?"},
		{"the beginning of a pod's name", rule(policy.Match{Pods: []string{"gone"}}), "rules[1].match.pods[0]: gone " + noPod + ": did you mean gone-1?"},
		{"a rule's pool", rule(policy.Match{Pools: []string{"smal-range"}}), "rules[1].match.pools[0]: smal-range matches no pool, network or attachment that was listed: did you mean small-range?"},
		{"a rule's attachment", rule(policy.Match{Pools: []string{"prod/undrelay"}}), "rules[1].match.pools[0]: prod/undrelay matches no pool, network or attachment that was listed: did you mean prod/underlay?"},
		{"a rule's CIDR around a pool", rule(policy.Match{Pools: []string{"10.0.0.0/8", "small-range", "pool"}}), ""},
		{"a rule's node", rule(policy.Match{Nodes: []string{"egde-1"}}), "rules[1].match.nodes[0]: egde-1 matches no node that was listed, and no allocation's: did you mean edge-1?"},
		{"a rule's pod that is gone", rule(policy.Match{Pods: []string{"gone-1"}}), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			says := slices.DeleteFunc(unmatchedBy(t, tt.policy.Patterns()), func(s string) bool { return !strings.HasSuffix(s, "?") })
			equal(t, "near names", strings.Join(says, "\n"), tt.want)
		})
	}
}

func TestPatternsThatMatchNothing(t *testing.T) {
	p := policy.Default()
	p.Namespaces = policy.Namespaces{Include: []string{"*", "pay*"}, Exclude: []string{"kube-*", "paymnets"}}
	p.Rules = []policy.Rule{{Match: policy.Match{Namespaces: []string{"inf*"}, Pods: []string{"web-?", "web-[1-9]"}, Backends: []string{"fixed", "cal*", "reservedIPs"}}}}
	want := []string{
		"namespaces.exclude[0]: kube-* matches the namespace of no pod and no allocation that was listed",
		"namespaces.exclude[1]: paymnets matches the namespace of no pod and no allocation that was listed: did you mean payments?",
		"rules[0].match.pods[1]: web-[1-9] matches no pod and no allocation that was listed",
		"rules[0].match.backends[1]: cal* matches no store that was listed",
		"rules[0].match.backends[2]: reservedIPs matches no store that was listed",
	}
	equal(t, "unmatched", unmatchedBy(t, p.Patterns()), want)
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
