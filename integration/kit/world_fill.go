package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// A made world is the result of real ADDs, made once for all tests of a binary.
type made struct {
	stores Store
	pods   map[string][]cluster.PodOption
	empty  string
}

var filled *made

// fill gives the world its entries and its pods.
func (w *World) fill() {
	w.Helper()
	if filled == nil {
		filled = w.make()
	} else {
		w.Must(w.Cluster.CreateNode(w.Context(), Node, true))
		w.Put(filled.stores)
	}
	for pod, options := range filled.pods {
		_, err := w.Cluster.CreatePod(w.Context(), Shop, pod, options...)
		w.Must(err)
	}
	w.Empty = filled.empty
}

// make makes the real plugins allocate the addresses.
func (w *World) make() *made {
	w.Helper()
	ctx := w.Context()
	w.Must(w.Ready(ctx, Node))
	p, err := plugin.New(w.Dir, w.Cluster.Kubeconfig)
	w.Must(err)
	add := func(n plugin.Network, pod, iface string) string {
		ips, err := p.Add(ctx, n, plugin.Pod{Namespace: Shop, Name: pod}, n.Name+"-"+pod, iface)
		w.Must(err)
		return ips[0].String()
	}
	sandbox := func(pod string, dual bool) (calico.Sandbox, []netip.Addr) {
		s := calico.NewSandbox(Shop, pod, Node)
		s.IPv4, s.IPv6 = true, dual
		ips, err := w.Add(ctx, s)
		w.Must(err)
		return s, ips
	}
	m := &made{pods: map[string][]cluster.PodOption{}}
	shows := func(s calico.Sandbox, ips []netip.Addr, more ...cluster.PodOption) {
		m.pods[s.Pod] = append(s.PodOptions(ips...), more...)
	}
	add(LAN, "gone-1", "net1")
	first, second := add(LAN, "live", "net1"), add(WAN, "live", "net2")
	add(WAN, "gone-1", "net2")
	kept := add(LAN, "gone-2", "net1")
	sandbox("gone-1", true)
	live, ips := sandbox("live", true)
	shows(live, ips, cluster.Networks(
		cluster.Attached(Shop+"/lan", "net1", first), cluster.Attached(Shop+"/wan", "net2", second)))
	_, lost := sandbox("gone-2", false)
	m.empty = calico.DefaultNetwork + "." + calico.NewContainerID()
	w.Must(w.PutHandle(ctx, m.empty, map[netip.Prefix]int{netip.PrefixFrom(lost[0], 26).Masked(): 1}))
	w.Must(w.reserve(ctx, kept, lost[0].String()))
	w.Must(w.annotate(ctx, kept))
	add(LAN, "slow-1", "net1")
	sandbox("slow-0", false)
	newer, ips := sandbox("slow-0", false)
	shows(newer, ips)
	m.stores = w.Stores()
	return m
}

// reserve creates the reserved IP that kept the addresses of gone-2, and has expired.
func (w *World) reserve(ctx context.Context, lan, block string) error {
	return Object{
		Resource: ReservedIPObjects, Namespace: Shop, Name: "gone-2",
		Raw: json.RawMessage(fmt.Sprintf(`{"apiVersion":"network.example.com/v1alpha1","kind":"ReservedIP",
			"metadata":{"name":"gone-2","namespace":%q},
			"spec":{"pod":"shop/gone-2","ttl":"24h"},
			"status":{"ips":[%q,%q],"deletedAt":"2026-01-02T15:04:05Z"}}`, Shop, lan, block)),
	}.Create(ctx, w.Cluster)
}

// annotate adds labels and annotations that the reaper does not know to an address's reservation.
func (w *World) annotate(ctx context.Context, ip string) error {
	path := "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/" + cluster.PoolNamespace + "/overlappingrangeipreservations/" + ip
	return w.Cluster.Kube.Discovery().RESTClient().Patch("application/merge-patch+json").AbsPath(path).
		Body([]byte(`{"metadata":{"labels":{"a":"b"},"annotations":{"c":"<&>"}}}`)).Do(ctx).Error()
}
