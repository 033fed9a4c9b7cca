package reaper

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
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
		all := make([]*Allocation, rapid.IntRange(0, 40).Draw(t, "allocations"))
		for i := range all {
			a := &Allocation{Key: fmt.Sprint(i), Group: name("group"), IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(few.Draw(t, "ip"))})}
			a.Owner = Owner{Sandbox: name("sandbox"), Pod: PodRef{Namespace: "ns", Name: name("pod")}}
			all[i] = a
		}
		x := newIndex(all)
		for _, asked := range append(all, &Allocation{Group: "other", Owner: Owner{Sandbox: "other"}}) {
			want := func(same func(a *Allocation) bool) []*Allocation {
				return slices.DeleteFunc(slices.Clone(all), func(a *Allocation) bool { return !same(a) })
			}
			sandbox, group := asked.Owner.Sandbox, asked.Group
			if got := slices.Collect(x.ofSandbox(sandbox)); !slices.Equal(got, want(func(a *Allocation) bool { return sandbox != "" && a.Owner.Sandbox == sandbox })) {
				t.Fatalf("of sandbox %q: %v", sandbox, got)
			}
			if got := slices.Collect(x.ofGroup(group)); !slices.Equal(got, want(func(a *Allocation) bool { return group != "" && a.Group == group })) {
				t.Fatalf("of group %q: %v", group, got)
			}
			of := func(a *Allocation) bool { return a.IP == asked.IP && a.Owner.Pod == asked.Owner.Pod }
			if got := slices.Collect(x.of(asked.IP, asked.Owner.Pod)); !slices.Equal(got, want(of)) {
				t.Fatalf("of %s and pod %s: %v", asked.IP, asked.Owner.Pod, got)
			}
		}
	})
}
