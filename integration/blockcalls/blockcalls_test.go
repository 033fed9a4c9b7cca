package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

func TestMain(m *testing.M) { calico.Main(m) }

// small is what a test can afford.
var small = size{leaked: 70, live: 10, nodes: 1}

// stage fills a datastore for a measurement.
func stage(t *testing.T, d *calico.Datastore) measure {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := proxy.Start(d.Cluster.Config)
	must(err)
	t.Cleanup(p.Stop)
	kubeconfig, err := d.Cluster.KubeconfigFor(p.Config(d.Cluster.Config))
	must(err)
	through, err := d.Through(kubeconfig)
	must(err)
	s := &stock{Datastore: d, size: small}
	must(s.fill(t.Context()))
	must(s.leak(t.Context()))
	return measure{s, p, through, kubeconfig}
}

// What is written by hand is no different to Calico from what its plugin left.
func TestStockIsAsCalicoWouldHaveIt(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		m := stage(t, d)
		r, err := m.through.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Leaked) != small.leaked || r.Problems != small.leaked || len(r.Allocations) != small.leaked+small.live {
			t.Errorf("calicoctl finds %d leaks, %d problems and %d allocations:\n%s", len(r.Leaked), r.Problems, len(r.Allocations), r.Text)
		}
		c, err := m.of(t.Context(), m.calicoctl)
		if err != nil || c.released != small.leaked || c.handles != 0 {
			t.Errorf("calicoctl released %d and left %d handles, %v", c.released, c.handles, err)
		}
	})
}

// A block is written once, whatever goes of it, and a handle once; in etcd
// together.
func TestWritesOfARunAreFew(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		m := stage(t, d)
		c, err := m.of(t.Context(), m.reaper)
		if err != nil {
			t.Fatal(err)
		}
		if c.released != small.leaked || c.handles != 0 {
			t.Errorf("%d addresses were released and %d handles are left", c.released, c.handles)
		}
		writes := m.proxy.Mutations()
		if d.Etcd != nil {
			writes = map[string]int{"Txn": c.etcd["Txn"], "Put": c.etcd["Put"], "DeleteRange": c.etcd["DeleteRange"]}
		}
		want := map[string]int{
			"update ipamblocks": small.blocks(), "delete ipamhandles": small.leaked,
			"create leases": 1, "update leases": 1, "create configmaps": 2, "create events": small.leaked,
		}
		if d.Etcd != nil {
			want = map[string]int{"Txn": small.blocks(), "Put": 0, "DeleteRange": 0}
		}
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		var out bytes.Buffer
		if err := tell(&out, "title", small, []cost{c, c}); err != nil || !strings.Contains(out.String(), "1.0x") {
			t.Errorf("table: %v\n%s", err, out.String())
		}
	})
}
