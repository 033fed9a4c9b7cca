package calico

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The WorkloadEndpoint of a pod is read by the name that it has on the node of the allocation, and each has
// its own error.
func TestEndpointsAreReadByName(t *testing.T) {
	of := func(pod, sandbox string) *ipam.Allocation {
		return &ipam.Allocation{
			IP: netip.MustParseAddr("10.0.0.7"), StoreNode: &ipam.StoreNode{Name: "n-1", Node: "node-1.example.com"},
			Owner: ipam.Owner{Pod: ipam.PodRef{Namespace: "app", Name: pod}, Node: "node-1.example.com", Sandbox: sandbox},
		}
	}
	endpoint := func(pod, sandbox, network string) resource {
		return resource{"app/n--1-k8s-" + pod + "-eth0", fmt.Appendf(nil, `{"spec":{"containerID":%q,"ipNetworks":["fd00::7/128",%q]}}`, sandbox, network)}
	}
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		s.more["workloadendpoints"] = []resource{
			endpoint("web--0", sandbox(1), "10.0.0.7/32"), endpoint("later", sandbox(2), "10.0.0.7/32"), endpoint("other", sandbox(1), "10.0.0.8/32"), endpoint("wide", sandbox(1), "10.0.0.0/24"),
			{"app/n--1-k8s-broken-eth0", []byte(`{`)},
		}
		s.onRequest(nil)
		unnamed := of("web-0", "")
		got := s.backend.Endpoints(t.Context(), []*ipam.Allocation{
			of("web-0", sandbox(1)), of("later", sandbox(1)), of("other", sandbox(1)), of("wide", sandbox(1)), of("gone", sandbox(1)), unnamed, {}, of("broken", sandbox(1)),
		})
		if broken := got[len(got)-1].Err; broken == nil || !strings.Contains(broken.Error(), "n--1-k8s-broken-eth0") {
			t.Errorf("one cannot be decoded: %v", broken)
		}
		six, seven := netip.MustParseAddr("fd00::7"), netip.MustParseAddr("10.0.0.7")
		want := []ipam.Endpoint{
			{Name: "n--1-k8s-web--0-eth0", Sandbox: sandbox(1), Addresses: []netip.Addr{six, seven}},
			{Name: "n--1-k8s-later-eth0", Sandbox: sandbox(2), Addresses: []netip.Addr{six, seven}},
			{Name: "n--1-k8s-other-eth0", Sandbox: sandbox(1), Addresses: []netip.Addr{six, netip.MustParseAddr("10.0.0.8")}},
			{Name: "n--1-k8s-wide-eth0", Sandbox: sandbox(1), Addresses: []netip.Addr{six}},
			{}, {}, {},
		}
		if diff := cmp.Diff(want, got[:len(want)], cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("endpoints (-want +got):\n%s", diff)
		}
		if n := len(s.requests()); n != 6 {
			t.Errorf("%d requests %v, want one for each pod that is named", n, s.requests())
		}
		s.onRequest(func(request string) error {
			if request == "endpoint app/n--1-k8s-later-eth0" {
				return errRefused
			}
			return nil
		})
		got = s.backend.Endpoints(t.Context(), []*ipam.Allocation{of("later", sandbox(2)), of("web-0", sandbox(1))})
		if !errors.Is(got[0].Err, errRefused) || got[1].Name != "n--1-k8s-web--0-eth0" {
			t.Errorf("one cannot be read: %+v", got)
		}
	})
}
