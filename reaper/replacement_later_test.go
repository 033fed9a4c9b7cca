package reaper_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// laterSandboxSituation returns an allocation of sandbox s1, and one that sandbox s2
// got a minute later. The pod names no sandbox, and shows the address of s2.
func laterSandboxSituation() (older, newer reaper.Allocation, pod reaper.Pod) {
	older, newer = webAllocation(), webAllocation()
	older.SandboxOwned, newer.SandboxOwned = true, true
	older.Owner.Node, newer.Owner.Node = "node-1", "node-1"
	older.Created, newer.Created = noon.Add(-time.Hour), noon.Add(-time.Hour+time.Minute)
	newer.Key, newer.IP, newer.Token, newer.Owner.Sandbox = "2", ip2, "t2", "s2"
	return older, newer, reaper.Pod{Ref: web, Addresses: []netip.Addr{ip2}}
}

// Promise 1, 2. Each case that is kept lacks one part of the proof. Plugins that only
// use Calico's IPAM do not write the sandbox into the pod's annotations.
func TestSandboxIsReplacedOnlyByALaterOneThatThePodShows(t *testing.T) {
	kept := decision{reaper.InUse, reaper.PodPresent, ""}
	replaced := decision{reaper.Suspected, reaper.SandboxReplaced, "the pod has 10.0.0.2"}
	for _, tt := range []struct {
		name   string
		change func(older, newer *reaper.Allocation, pod *reaper.Pod)
		want   decision
	}{
		{"all is proved", func(_, _ *reaper.Allocation, _ *reaper.Pod) {}, replaced},
		{"the other allocation is older", func(o, n *reaper.Allocation, _ *reaper.Pod) { o.Created, n.Created = n.Created, o.Created }, kept},
		{"both are of the same moment", func(o, n *reaper.Allocation, _ *reaper.Pod) { o.Created = n.Created }, kept},
		{"this allocation has no age", func(o, _ *reaper.Allocation, _ *reaper.Pod) { o.Created = time.Time{} }, kept},
		{"the other allocation has no age", func(_, n *reaper.Allocation, _ *reaper.Pod) { n.Created = time.Time{} }, kept},
		{"both are of one sandbox", func(_, n *reaper.Allocation, _ *reaper.Pod) { n.Owner.Sandbox = "s1" }, kept},
		{"this allocation names no sandbox", func(o, _ *reaper.Allocation, _ *reaper.Pod) { o.Owner.Sandbox = "" }, kept},
		{"the other allocation names no sandbox", func(_, n *reaper.Allocation, _ *reaper.Pod) { n.Owner.Sandbox = "" }, kept},
		{"the other allocation is another pod's", func(_, n *reaper.Allocation, _ *reaper.Pod) { n.Owner.Pod = other }, kept},
		{"the other allocation cannot be read", func(_, n *reaper.Allocation, _ *reaper.Pod) { n.Unreadable = "no JSON" }, kept},
		{"the pod of the other allocation is inferred", func(_, n *reaper.Allocation, _ *reaper.Pod) { n.Inferred = true }, kept},
		{"the pod shows another address", func(_, _ *reaper.Allocation, p *reaper.Pod) {
			p.Addresses = []netip.Addr{netip.MustParseAddr("10.0.0.3")}
		}, kept},
		{"the pod shows both addresses", func(_, _ *reaper.Allocation, p *reaper.Pod) { p.Addresses = []netip.Addr{ip2, ip1} }, kept},
		{"the pod does not show all that it should", func(_, _ *reaper.Allocation, p *reaper.Pod) { p.AddressUnknown = true }, kept},
		{"the pod leaves out a network that never has an address", func(_, _ *reaper.Allocation, p *reaper.Pod) { p.LeavesOut = true }, replaced},
		{"the pod names this sandbox", func(_, _ *reaper.Allocation, p *reaper.Pod) { p.Sandbox = "s1" }, kept},
		{"this allocation is of another node, whose clock may be wrong", func(o, _ *reaper.Allocation, _ *reaper.Pod) { o.Owner.Node = "node-2" }, kept},
		{"no allocation names its node", func(o, n *reaper.Allocation, _ *reaper.Pod) { o.Owner.Node, n.Owner.Node = "", "" }, kept},
		{"this allocation is of another node, and long before", func(o, n *reaper.Allocation, _ *reaper.Pod) {
			o.Owner.Node, n.Created = "node-2", o.Created.Add(4*time.Minute+time.Second)
		}, replaced},
	} {
		t.Run(tt.name, func(t *testing.T) {
			older, newer, pod := laterSandboxSituation()
			tt.change(&older, &newer, &pod)
			there := poolOf(newer)
			there.Name = "there" // blocks of one pod's addresses may differ
			s := situation{pools: []reaper.Pool{poolOf(older), there}, pods: []reaper.Pod{pod}}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1. While the ADD of the newer sandbox is in flight, the pod still shows the
// address of the older one.
func TestLaterSandboxIsNotReplacedByTheOneBefore(t *testing.T) {
	older, newer, pod := laterSandboxSituation()
	pod.Addresses = []netip.Addr{older.IP}
	s := situation{pools: []reaper.Pool{poolOf(older, newer)}, pods: []reaper.Pod{pod}}
	for _, d := range s.judge(t, noon) {
		equal(t, "verdict", decisionOf(d), decision{reaper.InUse, reaper.PodPresent, ""})
	}
}
