package reaper

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// Promise 1. The index finds what a look through the whole list finds.
func TestPodIndexFindsWhatTheListHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SampledFrom([]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::1")})
		boxes := []string{"", "a", "b"}
		var pods []Pod
		for i := range rapid.IntRange(0, 40).Draw(t, "pods") {
			pods = append(pods, Pod{
				Ref:       PodRef{Namespace: fmt.Sprintf("n%d", i%3), Name: fmt.Sprintf("p%d", i)},
				Addresses: rapid.SliceOfNDistinct(few, 0, 3, rapid.ID).Draw(t, "addresses"),
				Sandbox:   rapid.SampledFrom(boxes).Draw(t, "sandbox"),
			})
		}
		x := newPodIndex(pods)
		for _, pod := range append(slices.Clone(pods), Pod{Ref: PodRef{Name: "p1"}}, Pod{Ref: PodRef{Namespace: "n1", Name: "p0"}}) {
			at := slices.IndexFunc(pods, func(p Pod) bool { return p.Ref == pod.Ref })
			got, found := x.named(pod.Ref)
			if found != (at >= 0) || found && got.Ref != pod.Ref {
				t.Fatalf("%v is found: %v", pod.Ref, found)
			}
		}
		refs := func(has func(Pod) bool) []PodRef {
			var all []PodRef
			for _, p := range pods {
				if has(p) {
					all = append(all, p.Ref)
				}
			}
			return all
		}
		for _, text := range []string{"10.0.0.1", "10.0.0.2", "fd00::1", "10.0.0.9"} {
			ip := netip.MustParseAddr(text)
			if diff := cmp.Diff(refs(func(p Pod) bool { return p.Shows(ip) }), slices.Collect(x.showing(ip)), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("pods that show %v (-want +got):\n%s", ip, diff)
			}
		}
		for _, id := range []string{"a", "b", "c"} {
			want := refs(func(p Pod) bool { return p.Sandbox == id })
			if got, found := x.inSandbox(id); found != (len(want) > 0) || found && got != want[0] {
				t.Fatalf("the pod in %s is %v, %v, want the first of %v", id, got, found, want)
			}
		}
		if ref, found := x.inSandbox(""); found {
			t.Fatalf("a pod without a sandbox is found by one: %v", ref)
		}
	})
}

func TestZeroPodIndexHasNoPods(t *testing.T) {
	var x podIndex
	_, named := x.named(PodRef{})
	_, boxed := x.inSandbox("")
	if named || boxed || len(slices.Collect(x.showing(netip.Addr{}))) > 0 {
		t.Error("the zero index finds a pod")
	}
}
