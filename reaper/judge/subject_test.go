package judge_test

import (
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A rule for pools or nodes that ends the grace period releases only what surely matches, and one that
// holds also holds what may match.
func TestRulesForPoolsAndNodes(t *testing.T) {
	onNode := func(name string) ipam.Allocation {
		a := webAllocation()
		a.Owner.Node = name
		return a
	}
	reservation := webAllocation() // no pool of its own has its range
	reservation.Pool = "kube-system/10.0.0.1"
	pools := func(names ...string) policy.Match { return policy.Match{Pools: names} }
	nodes := func(names ...string) policy.Match { return policy.Match{Nodes: names} }
	empty := ipam.Allocation{Key: "h", Token: "t", EmptyHandle: true}
	for _, tt := range []struct {
		name  string
		match policy.Match
		a     ipam.Allocation
		want  string // yes, maybe or no
	}{
		{"the pool", pools("pool"), webAllocation(), "yes"},
		{"the network", pools("small"), webAllocation(), "yes"},
		{"the attachment", pools("prod/underlay"), webAllocation(), "yes"},
		{"the range", pools("10.0.0.0/16"), webAllocation(), "yes"},
		{"another pool", pools("b", "10.1.0.0/16", "prod/other"), webAllocation(), "no"},
		{"the range around what has no range", pools("10.0.0.0/16"), reservation, "yes"},
		{"the network of the pool around what has no range", pools("small"), reservation, "yes"},
		{"its own name", pools("10.0.0.1"), reservation, "yes"},
		{"another range than around it", pools("10.1.0.0/16", "b"), reservation, "no"},
		{"the node", nodes("n*"), onNode("n1"), "yes"},
		{"a node that is gone", nodes("gone"), onNode("gone"), "yes"},
		{"another node", nodes("n2"), onNode("n1"), "no"},
		{"its node is unknown", nodes("n1"), onNode(""), "maybe"},
		{"the pool, and its node is unknown", policy.Match{Pools: []string{"pool"}, Nodes: []string{"n1"}}, onNode(""), "maybe"},
		{"another pool, and its node is unknown", policy.Match{Pools: []string{"b"}, Nodes: []string{"n1"}}, onNode(""), "no"},
		{"an empty handle is nowhere", policy.Match{Pools: []string{"*"}, Nodes: []string{"*"}}, empty, "no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			decision := func(change func(*policy.Rule), surveyed bool) judge.Decision {
				p := policy.Default()
				p.MinAge.Duration = 0
				rule := policy.Rule{Match: tt.match}
				change(&rule)
				p.Rules = []policy.Rule{rule}
				pool := poolOf(webAllocation())
				pool.Range = netip.MustParsePrefix("10.0.0.0/24")
				all := []ipam.Pool{pool}
				if tt.a.Pool != "" && tt.a.Pool != "pool" || tt.a.EmptyHandle {
					all = append(all, ipam.Pool{Name: tt.a.Pool + "x", Allocations: []ipam.Allocation{tt.a}})
					all[1].Name = "kube-system/10.0.0.1"
				} else {
					all[0].Allocations = []ipam.Allocation{tt.a}
				}
				inv := inventory(t, fixedStore(all))
				if surveyed {
					inv.Listings[0].Surveyed = true
					inv.Listings[0].Networks = []ipam.Network{{Name: "small", Range: pool.Range, Pools: []string{"pool"}, Attachments: []string{"prod/underlay"}}}
				}
				s := situation{nodes: []census.Node{ready("n1"), ready("n2")}}
				decisions := judge.Judge(noon, p, inv, s.census(t), s.ledger)
				return decisions[len(decisions)-1]
			}
			hold := func(r *policy.Rule) { r.Hold = true }
			got := "no"
			switch {
			case decision(func(r *policy.Rule) { r.GracePeriod = new(policy.Duration{}) }, true).Verdict == judge.Orphaned:
				got = "yes"
			case decision(hold, true).Reason == judge.RuleHold:
				got = "maybe"
			}
			equal(t, "matches", got, tt.want)
			if tt.want != "no" && decision(hold, false).Reason != judge.RuleHold {
				t.Error("it is not held while the networks are unknown")
			}
		})
	}
}

// While the networks of a store are unknown, a name may be that of one of them.
func TestRuleForANetworkThatIsUnknown(t *testing.T) {
	p := policy.Default()
	p.Rules = []policy.Rule{{Match: policy.Match{Pools: []string{"prod/underlay"}}, Hold: true}}
	pool := poolOf(webAllocation())
	pool.Range = netip.MustParsePrefix("10.0.0.0/24")
	inv := inventory(t, fixedStore{pool})
	s := situation{}
	equal(t, "verdict", judge.Judge(noon, p, inv, s.census(t), s.ledger)[0].Verdict, judge.Held)
	inv.Listings[0].Surveyed = true
	equal(t, "verdict when all are known", judge.Judge(noon, p, inv, s.census(t), s.ledger)[0].Verdict, judge.Suspected)
}
