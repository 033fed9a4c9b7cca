package judge

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The index answers as a walk through all allocations does, in their order.
func TestIndexFindsWhatAWalkFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.IntRange(0, 4) // names that many have in common, and none
		name := func(what string) string {
			if n := few.Draw(t, what); n > 0 {
				return fmt.Sprint(what, n)
			}
			return ""
		}
		nameless := rapid.Bool().Draw(t, "some name no pod")
		all := make([]*ipam.Allocation, rapid.IntRange(0, 40).Draw(t, "allocations"))
		for i := range all {
			a := &ipam.Allocation{Key: fmt.Sprint(i), Group: name("group"), IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(few.Draw(t, "ip"))})}
			a.Owner.Sandbox = name("sandbox")
			if pod := name("pod"); pod != "" || !nameless {
				a.Owner.Pod = ipam.PodRef{Namespace: "ns", Name: pod}
			}
			all[i] = a
		}
		x := newIndex(all)
		for _, asked := range append(all, &ipam.Allocation{Group: "other", Owner: ipam.Owner{Sandbox: "other"}}, &ipam.Allocation{Group: "group1", Owner: ipam.Owner{Sandbox: "sandbox1"}}) {
			want := func(same func(a *ipam.Allocation) bool) []*ipam.Allocation {
				return slices.DeleteFunc(slices.Clone(all), func(a *ipam.Allocation) bool { return !same(a) })
			}
			pod, none := asked.Owner.Pod, ipam.PodRef{}
			sharing := func(shared string, name func(*ipam.Allocation) string) []*ipam.Allocation {
				return want(func(a *ipam.Allocation) bool {
					return shared != "" && name(a) == shared && a.Key != asked.Key && (pod == none || a.Owner.Pod == none || a.Owner.Pod == pod)
				})
			}
			sandbox, group := asked.Owner.Sandbox, asked.Group
			if got := x.sandboxes.others(nil, asked, sandbox); !slices.Equal(got, sharing(sandbox, func(a *ipam.Allocation) string { return a.Owner.Sandbox })) {
				t.Fatalf("of sandbox %q and pod %s: %v", sandbox, pod, got)
			}
			if got := x.groups.others(nil, asked, group); !slices.Equal(got, sharing(group, func(a *ipam.Allocation) string { return a.Group })) {
				t.Fatalf("of group %q and pod %s: %v", group, pod, got)
			}
			of := func(a *ipam.Allocation) bool { return a.IP == asked.IP && a.Owner.Pod == pod }
			if got := slices.Collect(x.of(asked.IP, pod)); !slices.Equal(got, want(of)) {
				t.Fatalf("of %s and pod %s: %v", asked.IP, pod, got)
			}
		}
	})
}

// Where thousands of pods share one sandbox, a lookup of one of them does not walk through
// the others.
func TestIndexOfOneSandboxIsWalkedInLinearTime(t *testing.T) {
	const n = 4096
	all := make([]*ipam.Allocation, n)
	for i := range all {
		all[i] = &ipam.Allocation{Key: fmt.Sprint(i), Group: "group", Owner: ipam.Owner{Sandbox: "sandbox", Pod: ipam.PodRef{Namespace: "ns", Name: fmt.Sprint(i)}}}
	}
	x := newIndex(all)
	for name, s := range map[string]*sharers{"sandbox": &x.sandboxes, "group": &x.groups} {
		compared := 0
		for _, a := range all {
			if got := s.others(nil, a, name); len(got) > 0 {
				t.Fatalf("pod %s shares the %s with %d", a.Owner.Pod, name, len(got))
			}
			compared += len(s.near(nil, name, a.Owner.Pod))
		}
		if compared > 10*n {
			t.Errorf("the questions about the %s of %d pods compared %d allocations", name, n, compared)
		}
	}
}
