package undo_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// The networks of Whereabouts, with a pool each, and allocations across ranges in one.
var (
	lan = plugin.Network{Name: "lan", Range: "10.1.0.0/24"}
	wan = plugin.Network{Name: "wan", Range: "10.2.0.0/24", DisableOverlapping: true}
)

// A world is a scene whose stores all have something for a run to release, beside
// what is in use. The pod live is there, and shows an address of every store.
// Another, gone-1, is gone and had as much; of gone-2, an IPv4 address and one of the
// lan are left, and a allocation that kept them and has expired. A handle has lost
// its address. The ledger says that all this has been so for long.
type world struct {
	*scene
	before stores // nothing was released
	end    stores // all of it was
}

// records is how many entries of a world a run releases, and writes down.
const records = 10

// A cast is what real ADDs have made of a world, once for all tests of one
// datastore in the API server.
type cast struct {
	stores stores
	live   []cluster.PodOption
}

var played *cast

// newWorld sets a world up in the datastore, which is the API server's or an etcd.
func newWorld(t *testing.T, d *calico.Datastore) *world {
	t.Helper()
	w := &world{scene: newScene(t, d)}
	c := played
	if c == nil || d.Etcd != nil {
		c = w.play()
	} else {
		w.put(c.stores)
	}
	_, err := d.Cluster.CreatePod(t.Context(), shop, "live", c.live...)
	w.must(err)
	if d.Etcd == nil {
		played = c
	}
	w.before = w.stores()
	w.remember()
	return w
}

// play has the real plugins give out the addresses.
func (w *world) play() *cast {
	w.Helper()
	ctx := w.Context()
	w.must(w.ApplyPool(ctx, "four", netip.MustParsePrefix("10.30.0.0/24"), 26))
	w.must(w.ApplyPool(ctx, "six", netip.MustParsePrefix("fd30::/112"), 122))
	p, err := plugin.New(w.dir, w.Cluster.Kubeconfig)
	w.must(err)
	add := func(n plugin.Network, pod, iface string) string {
		ips, err := p.Add(ctx, n, plugin.Pod{Namespace: shop, Name: pod}, n.Name+"-"+pod, iface)
		w.must(err)
		return ips[0].String()
	}
	sandbox := func(pod string, dual bool) (calico.Sandbox, []netip.Addr) {
		s := calico.NewSandbox(shop, pod, node)
		s.IPv4, s.IPv6 = true, dual
		ips, err := w.Add(ctx, s)
		w.must(err)
		return s, ips
	}
	add(lan, "gone-1", "net1")
	first, second := add(lan, "live", "net1"), add(wan, "live", "net2")
	add(wan, "gone-1", "net2")
	gone := add(lan, "gone-2", "net1")
	sandbox("gone-1", true)
	live, ips := sandbox("live", true)
	_, lost := sandbox("gone-2", false)
	w.must(w.PutHandle(ctx, calico.DefaultNetwork+"."+calico.NewContainerID(), map[netip.Prefix]int{netip.PrefixFrom(lost[0], 26).Masked(): 1}))
	w.reserve(gone, lost[0].String())
	w.annotate(gone)
	if w.Etcd != nil {
		w.must(w.ApplyEndpoint(ctx, live, ips...))
	}
	return &cast{w.stores(), append(live.PodOptions(ips...), cluster.Networks(
		cluster.Attached(shop+"/lan", "net1", first), cluster.Attached(shop+"/wan", "net2", second),
	))}
}

// reserve makes the allocation that kept the addresses of gone-2, in its status as
// in its spec, with what a careless restoration would change.
func (w *world) reserve(ips ...string) {
	w.Helper()
	o := object{resource: resources[len(resources)-1], namespace: shop, objectName: "gone-2"}
	o.raw = fmt.Appendf(nil, `{"apiVersion":"network.example.com/v1alpha1","kind":"ReservedIP",
		"metadata":{"name":"gone-2","namespace":%q,"labels":{"app":"db"},"annotations":{"example.com/note":"<a&b> ü"}},
		"spec":{"pod":"shop/gone-2","ttl":"24h","serial":9007199254740993,"extra":{"x":1.50}},
		"status":{"ips":[%q,%q],"deletedAt":"2026-01-02T15:04:05Z"}}`, shop, ips[0], ips[1])
	w.must(w.write(o, object{}, false))
}

// annotate writes on the allocation of an address what nobody knows the meaning of.
func (w *world) annotate(ip string) {
	w.Helper()
	path := "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/" + cluster.PoolNamespace + "/overlappingrangeipreservations/" + ip
	w.must(w.client().Patch("application/merge-patch+json").AbsPath(path).
		Body([]byte(`{"metadata":{"labels":{"a":"b"},"annotations":{"c":"<&>"}}}`)).Do(w.Context()).Error())
}

// again makes the world what it was in the beginning.
func (w *world) again() {
	w.Helper()
	w.proxy.Reset()
	w.forget()
	w.put(w.before)
	w.remember()
}
