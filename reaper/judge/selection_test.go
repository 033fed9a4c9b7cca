package judge_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

func TestSelection(t *testing.T) {
	a := webAllocation()
	a.Owner.Node = "n1"
	pool := poolOf(a)
	pool.Name = "kube-system/10.0.0.0-24"
	names := func(list ...string) []string { return list }
	for _, tt := range []struct {
		selection judge.Selection
		want      bool
		text      string
	}{
		{judge.Selection{}, true, ""},
		{judge.Selection{Namespaces: names("default")}, true, "namespace default"},
		{judge.Selection{Namespaces: names("other", "default")}, true, "namespace other or default"},
		{judge.Selection{Pods: names("default/web")}, true, "pod default/web"},
		{judge.Selection{Pods: names("other/web")}, false, "pod other/web"},
		{judge.Selection{Nodes: names("n1")}, true, "node n1"},
		{judge.Selection{Backends: names("fixed")}, true, "backend fixed"},
		{judge.Selection{Pools: names("10.0.0.0-24")}, true, "pool 10.0.0.0-24"},
		{judge.Selection{Namespaces: names("default"), Nodes: names("n2")}, false, "namespace default, node n2"},
		{judge.Selection{Namespaces: names("default"), Nodes: names("n1")}, true, "namespace default, node n1"},
	} {
		for range tt.selection.Pools {
			tt.selection.Found = map[ipam.PoolRef]bool{{Backend: "fixed", Name: pool.Name}: true}
		}
		s := situation{pools: []ipam.Pool{pool}, nodes: []census.Node{ready("n1"), ready("n2")}}
		selected := tt.selection.Of(s.judge(t, noon))
		equal(t, "selected by "+tt.text, selected == nil || selected[0], tt.want)
		equal(t, "text", tt.selection.String(), tt.text)
		equal(t, "everything", tt.selection.Everything(), tt.text == "")
	}
}
