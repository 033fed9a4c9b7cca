package judge_test

import (
	"cmp"
	"net/netip"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Promise 1. The command that releases an address without a precondition is for the tunnel of a node that is
// surely of this cluster, and gone; it comes after two looks. The address is held all the same.
func TestTunnelOfAGoneNodeMayBeReleasedByHand(t *testing.T) {
	tunnel := func(change func(*ipam.Allocation)) ipam.Allocation {
		a := ipam.Allocation{
			Key: "1", IP: ip1, Token: "t1", Group: "vxlan-tunnel-addr-n1",
			Owner: ipam.Owner{Node: "n1"}, Foreign: "an owner of Calico's type vxlanTunnelAddress", Tunnel: true,
		}
		if change != nil {
			change(&a)
		}
		return a
	}
	another := ready("n2")
	called, shows := another, another
	called.OtherNames = []string{"n1.example"}
	shows.Tunnels = map[netip.Addr]string{ip1: "projectcalico.org/IPv4VXLANTunnelAddr"}
	for name, tt := range map[string]struct {
		change  func(*ipam.Allocation)
		nodes   []census.Node
		pods    []census.Pod
		ledger  ledger.Ledger
		outside bool
		block   string // the node of its block; n1 unless it says so
		want    bool
	}{
		"its node is gone":                    {nodes: []census.Node{another}, want: true},
		"it has no handle":                    {change: func(a *ipam.Allocation) { a.Group = "" }, nodes: []census.Node{another}, want: true},
		"its node is ready":                   {nodes: []census.Node{another, ready("n1")}},
		"its node is not ready":               {nodes: []census.Node{another, notReady("n1")}},
		"a node may be called so":             {nodes: []census.Node{called}},
		"the name meant another node":         {nodes: []census.Node{another}, ledger: ledger.Ledger{Meanings: []ledger.Meaning{{Backend: "fixed", Name: "n1", Node: "n2", Seen: noon.Unix()}}}},
		"the nodes were not read":             {},
		"there are no nodes":                  {nodes: []census.Node{}},
		"a node shows it":                     {nodes: []census.Node{shows}},
		"a pod shows it":                      {nodes: []census.Node{another}, pods: []census.Pod{showing(other, ip1)}},
		"the store may be of another":         {nodes: []census.Node{another}, outside: true},
		"its block is another node's":         {nodes: []census.Node{another}, block: "n2"},
		"its node is not known":               {change: func(a *ipam.Allocation) { a.Owner.Node = "" }, nodes: []census.Node{another}},
		"it is of a machine, not of a tunnel": {change: func(a *ipam.Allocation) { a.Tunnel = false }, nodes: []census.Node{another}},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation{pods: tt.pods, nodes: tt.nodes}
			block := poolOf(tunnel(tt.change))
			block.Node = cmp.Or(tt.block, "n1")
			var store ipam.Backend = fixedStore{block}
			if tt.outside {
				store = outsideStore{store}
			}
			d := judge.Judge(noon, s.terms(), inventory(t, store), s.census(t), tt.ledger)[0]
			equal(t, "decision", decisionOf(d), held(judge.NotPodOwned, d.Allocation.Foreign))
			var commands []string
			for _, r := range remediesOf(d) {
				commands = append(commands, r.Command)
			}
			want := ""
			if tt.want {
				want = "kubectl --context prod get pods -A -l k8s-app=calico-kube-controllers\n" +
					"kubectl --context prod get nodes n1 --ignore-not-found\n" +
					"calicoctl ipam show --ip 10.0.0.1\ncalicoctl ipam release --ip 10.0.0.1"
			}
			equal(t, "commands", strings.Join(commands, "\n"), want)
			if handle := d.Evidence[len(d.Evidence)-1]; tt.want && (handle.Source != "handle" || handle.Says != d.Allocation.Group && handle.Says != "<none>") {
				t.Errorf("the last evidence is %+v", handle)
			}
		})
	}
}
