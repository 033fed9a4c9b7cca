package judge_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A run that looks twice waits for the siblings of what it releases, and for nothing that a sibling keeps.
// The sentences of each state have the waits of one allocation.
func TestWhoLooksTwiceWaitsForSiblings(t *testing.T) {
	of := func(key string, age time.Duration, group string) ipam.Allocation {
		a := webAllocation()
		a.Key, a.Group, a.Created, a.Adoption = key, group, noon.Add(-age), ipam.SandboxOwned
		return a
	}
	unreachable := of("5", time.Hour, "")
	unreachable.Owner.Node = "n1"
	rests := poolOf(of("3", time.Hour, "g"), of("4", time.Hour, "h"))
	rests.Name, rests.Rest = "rests", 5*time.Minute
	keeps := unreachable
	keeps.Key, keeps.Group = "6", "h"
	s := situation{pools: []ipam.Pool{poolOf(of("1", time.Hour, ""), of("2", time.Hour, "g"), unreachable, keeps), rests}, nodes: []census.Node{notReady("n1")}}
	s.pools[0].Allocations[0].Owner.Node, s.pools[0].Allocations[1].Owner.Node = "gone", "gone"
	rests.Allocations[0].Owner.Node, rests.Allocations[1].Owner.Node = "gone", "gone"
	for i := range s.pools {
		for n := range s.pools[i].Allocations {
			s.pools[i].Allocations[n].IP = ip(byte(10*i + n))
			s.pools[i].Allocations[n].Owner.Sandbox = s.pools[i].Allocations[n].Key
		}
	}
	decisions := s.judge(t, noon)
	waits := judge.Verdicts{Decisions: decisions}.Waits()
	got := make(map[string]time.Duration)
	for i, wait := range waits {
		got[decisions[i].Allocation.Key] = wait
	}
	equal(t, "waits", got, map[string]time.Duration{"1": 2 * time.Minute, "2": 6 * time.Minute, "3": 6 * time.Minute})
}
