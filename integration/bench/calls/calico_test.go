package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

func TestMain(m *testing.M) {
	kit.Main(m, kit.Options{Sets: []kit.Set{kit.Calico}, WatchCache: true})
}

// fewSandboxes are as many as a test can afford.
var fewSandboxes = sandboxSize{leaked: 70, live: 10, nodes: 1}

// filledBlocks fills a datastore for a measurement.
func filledBlocks(t *testing.T, d *calico.Datastore) blockMeasure {
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
	s := &blockStock{Datastore: d, size: fewSandboxes}
	must(s.fill(t.Context()))
	must(s.leak(t.Context()))
	return blockMeasure{s, p, through, kubeconfig}
}

// A block is written once for all of its addresses that go, and a handle once; in
// etcd together.
func TestWritesToBlocksAreFew(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		m := filledBlocks(t, d)
		c, err := m.of(t.Context(), m.reaper)
		if err != nil {
			t.Fatal(err)
		}
		if c.released != fewSandboxes.leaked || c.handles != 0 {
			t.Errorf("%d addresses were released and %d handles are left", c.released, c.handles)
		}
		writes := m.proxy.Mutations()
		if d.Etcd != nil {
			writes = map[string]int{"Txn": c.etcd["Txn"], "Put": c.etcd["Put"], "DeleteRange": c.etcd["DeleteRange"]}
		}
		want := map[string]int{
			"update ipamblocks": fewSandboxes.blocks(), "delete ipamhandles": fewSandboxes.leaked,
			"create leases": 1, "update leases": 1, "create configmaps": 2, "create events": fewSandboxes.leaked,
		}
		if d.Etcd != nil {
			want = map[string]int{"Txn": fewSandboxes.blocks(), "Put": 0, "DeleteRange": 0}
		}
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		var out bytes.Buffer
		if err := tellBlocks(&out, "title", fewSandboxes, []blockCost{c, c}); err != nil || !strings.Contains(out.String(), "1.0x") {
			t.Errorf("table: %v\n%s", err, out.String())
		}
	})
}
