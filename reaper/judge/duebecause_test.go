package judge_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// What is due for one cause alone says so, and is not due without it.
func TestOrphanSaysWhatAloneMakesItDue(t *testing.T) {
	of := func(node string) ipam.Allocation {
		a := webAllocation()
		a.Owner.Node = node
		return a
	}
	older, newer, pod := supersededSituation()
	podless := webAllocation()
	podless.Owner.Pod = ipam.PodRef{}
	away := census.Node{Name: "n1", Since: noon.Add(-time.Hour), Created: noon.Add(-24 * time.Hour)}
	fenced := away
	fenced.OutOfService, fenced.Tainted = true, noon
	const taint = "node n1 is fenced by the taint out-of-service since 2026-03-01T12:00:00Z, and not ready since 2026-03-01T11:00:00Z"
	releaseOnNodes := func(p *policy.Policy) { p.Nodes.Unreachable, p.Nodes.Unknown = policy.Release, policy.Release }
	for name, tt := range map[string]struct {
		situation
		want    string
		without func(*situation) // takes the cause away; nil if there is none
	}{
		"the pod is gone":  {situation{pools: []ipam.Pool{poolOf(of("n1"))}, nodes: []census.Node{ready("n1")}}, "", nil},
		"the node is gone": {situation{pools: []ipam.Pool{poolOf(of("n1"))}, nodes: []census.Node{ready("n2")}}, "", nil},
		"the node is fenced": {
			situation{pools: []ipam.Pool{poolOf(of("n1"))}, nodes: []census.Node{fenced}}, taint,
			func(s *situation) { s.nodes = []census.Node{away} },
		},
		"a node on which it may be is fenced": {
			situation{pools: []ipam.Pool{poolOf(of(""))}, nodes: []census.Node{fenced}}, taint,
			func(s *situation) { s.nodes = []census.Node{away} },
		},
		"the policy gives nodes up": {
			situation{pools: []ipam.Pool{poolOf(of("n1"))}, nodes: []census.Node{away}, policy: releaseOnNodes},
			"node n1 is not ready since 2026-03-01T11:00:00Z, and nodes.unreachable is release in the policy",
			func(s *situation) { s.policy = nil },
		},
		"the policy gives nodes up on which it may be": {
			situation{pools: []ipam.Pool{poolOf(of(""))}, nodes: []census.Node{away}, policy: releaseOnNodes},
			"node n1 is not ready since 2026-03-01T11:00:00Z, and nodes.unknown is release in the policy",
			func(s *situation) { s.policy = nil },
		},
		"the policy gives nodes up, and it is fenced": {
			situation{pools: []ipam.Pool{poolOf(of("n1"))}, nodes: []census.Node{fenced}, policy: releaseOnNodes}, "", nil,
		},
		"its pod has ended": {
			situation{pools: []ipam.Pool{poolOf(of(""))}, pods: []census.Pod{finished(showing(web, ip1))}, policy: func(p *policy.Policy) { p.Pods.Finished = policy.Release }},
			"pods.finished is release in the policy",
			func(s *situation) { s.policy = nil },
		},
		"its pod has ended on a fenced node": {
			situation{pools: []ipam.Pool{poolOf(of("n1"))}, pods: []census.Pod{finished(showing(web, ip1))}, nodes: []census.Node{fenced}, policy: func(p *policy.Policy) { p.Pods.Finished = policy.Release }},
			"pods.finished is release in the policy, and " + taint,
			func(s *situation) { s.nodes = []census.Node{away} },
		},
		"it names no pod": {
			situation{pools: []ipam.Pool{poolOf(podless)}, policy: func(p *policy.Policy) { p.Pods.Unnamed = policy.Release }},
			"pods.unnamed is release in the policy",
			func(s *situation) { s.policy = nil },
		},
		"a later sandbox has another one": {
			situation{pools: []ipam.Pool{poolOf(older, newer)}, pods: []census.Pod{pod}},
			"pods.superseded is release in the policy",
			func(s *situation) { s.policy = func(p *policy.Policy) { p.Pods.Superseded = policy.Hold } },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.situation
			s.ledger = s.seen(t, noon)
			later := noon.Add(time.Hour)
			d := s.judge(t, later)[0]
			goes(t, "it", d)
			equal(t, "it is due because", judge.DueBecause(d.Evidence), tt.want)
			if tt.without != nil {
				tt.without(&s)
				kept(t, "without that", s.judge(t, later)[0])
			}
		})
	}
	s := situation{pools: []ipam.Pool{poolOf(lease())}, nodes: []census.Node{away}, policy: releaseOnNodes, sandboxes: []string{"s2"}}
	s.ledger = s.seen(t, noon)
	d := s.judge(t, noon.Add(time.Hour))[0]
	goes(t, "on a node", d)
	equal(t, "on a node, it is due because", judge.DueBecause(d.Evidence), "")
}
