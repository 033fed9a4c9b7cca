package kit_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// startPlugin returns the cluster, empty, and the plugin.
func startPlugin(t *testing.T) (*cluster.Cluster, *plugin.Plugin) {
	t.Helper()
	c := cluster.StartT(t)
	c.ResetT(t)
	p, err := plugin.New(t.TempDir(), c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

// mustAdd fails the test unless the ADD succeeds.
func mustAdd(t *testing.T, p *plugin.Plugin, n plugin.Network, pod plugin.Pod, containerID string) []netip.Addr {
	t.Helper()
	ips, err := p.Add(t.Context(), n, pod, containerID, "net1")
	if err != nil {
		t.Fatal(err)
	}
	return ips
}

func allocationsOf(t *testing.T, c *cluster.Cluster, pool string) map[string]v1alpha1.IPAllocation {
	t.Helper()
	got, err := c.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).
		Get(t.Context(), pool, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Spec.Allocations
}

func addrs(ips ...string) []netip.Addr {
	var list []netip.Addr
	for _, ip := range ips {
		list = append(list, netip.MustParseAddr(ip))
	}
	return list
}

func TestAddAdoptDel(t *testing.T) {
	c, p := startPlugin(t)
	n := plugin.Network{Range: "10.1.0.0/24", RangeStart: "10.1.0.7"}
	web := plugin.Pod{Namespace: "shop", Name: "web-0"}
	allocations := c.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace)

	first := mustAdd(t, p, n, web, "sandbox-1")
	if diff := cmp.Diff(addrs("10.1.0.7"), first, equalAddrs); diff != "" {
		t.Errorf("first sandbox (-want +got):\n%s", diff)
	}
	allocation, err := allocations.Get(t.Context(), "10.1.0.7", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.OverlappingRangeIPReservationSpec{PodRef: "shop/web-0", IfName: "net1"}
	if diff := cmp.Diff(want, allocation.Spec); diff != "" {
		t.Errorf("reservation (-want +got):\n%s", diff)
	}

	second := mustAdd(t, p, n, web, "sandbox-2")
	if diff := cmp.Diff(first, second, equalAddrs); diff != "" {
		t.Errorf("the same pod's second sandbox (-first +second):\n%s", diff)
	}
	adopted := map[string]v1alpha1.IPAllocation{
		"7": {ContainerID: "sandbox-2", PodRef: "shop/web-0", IfName: "net1"},
	}
	if diff := cmp.Diff(adopted, allocationsOf(t, c, "10.1.0.0-24")); diff != "" {
		t.Errorf("after adoption (-want +got):\n%s", diff)
	}

	if err := p.Del(t.Context(), n, web, "sandbox-1", "net1"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(adopted, allocationsOf(t, c, "10.1.0.0-24")); diff != "" {
		t.Errorf("after the DEL of the sandbox that was replaced (-want +got):\n%s", diff)
	}
	if err := p.Del(t.Context(), n, web, "sandbox-2", "net1"); err != nil {
		t.Fatal(err)
	}
	if left := allocationsOf(t, c, "10.1.0.0-24"); len(left) > 0 {
		t.Errorf("left after the DEL: %v", left)
	}
	if _, err := allocations.Get(t.Context(), "10.1.0.7", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reservation after the DEL: %v, want not found", err)
	}
}

func TestAddSaysThatTheRangeIsFull(t *testing.T) {
	_, p := startPlugin(t)
	n := plugin.Network{Range: "10.2.0.0/24", RangeStart: "10.2.0.4", RangeEnd: "10.2.0.4"}
	mustAdd(t, p, n, plugin.Pod{Namespace: "shop", Name: "web-0"}, "sandbox-1")
	_, err := p.Add(t.Context(), n, plugin.Pod{Namespace: "shop", Name: "web-1"}, "sandbox-2", "net1")
	var answer *plugin.Error
	if !errors.As(err, &answer) {
		t.Fatalf("ADD in a full range: %v, want a %T", err, answer)
	}
	want := "error at storage engine: Could not allocate IP in range: " +
		"ip: 10.2.0.4 / - 10.2.0.4 / range: 10.2.0.0/24 / excludeRanges: []"
	if answer.Msg != want {
		t.Errorf("message %q, want %q", answer.Msg, want)
	}
}

func TestConcurrentAddsOfWhereaboutsGetAddressesOfTheirOwn(t *testing.T) {
	c, p := startPlugin(t)
	var sandboxes []plugin.Sandbox
	for i := range 6 {
		sandboxes = append(sandboxes, plugin.Sandbox{
			Pod:         plugin.Pod{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)},
			ContainerID: fmt.Sprintf("sandbox-%d", i),
			Interface:   "net1",
		})
	}
	var got []netip.Addr
	for i, answer := range p.AddAll(t.Context(), plugin.Network{Range: "10.8.0.0/24"}, 3, sandboxes) {
		if answer.Err != nil || answer.Sandbox != sandboxes[i] {
			t.Errorf("answer %d: %+v, want one for %+v", i, answer, sandboxes[i])
		}
		got = append(got, answer.IPs...)
	}
	slices.SortFunc(got, netip.Addr.Compare)
	want := addrs("10.8.0.1", "10.8.0.2", "10.8.0.3", "10.8.0.4", "10.8.0.5", "10.8.0.6")
	if diff := cmp.Diff(want, got, equalAddrs); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if n := len(allocationsOf(t, c, "10.8.0.0-24")); n != len(sandboxes) {
		t.Errorf("%d allocations, want %d", n, len(sandboxes))
	}
}
