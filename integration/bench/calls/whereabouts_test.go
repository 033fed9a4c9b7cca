package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// fewEntries are as many as a test can afford.
var fewEntries = poolSize{pools: 4, live: 20, stale: 60}

// filledPools prepares a cluster with a proxy, and the kubeconfig that leads through
// it.
func filledPools(t testing.TB) (poolStock, *proxy.Proxy, poolMeasure, string) {
	t.Helper()
	c := calico.KubernetesT(t).Cluster
	p, err := proxy.Start(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	kubeconfig, err := c.KubeconfigFor(p.Config(c.Config))
	if err != nil {
		t.Fatal(err)
	}
	binary, err := assets.Path("ip-reaper")
	if err != nil {
		t.Fatal(err)
	}
	s := poolStock{c, fewEntries}
	if err := s.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, p, poolMeasure{binary, t.TempDir(), 32}, kubeconfig
}

// A pool is written once for all of its entries that go, and a reservation twice. Beside them
// there are the run's own writes, and one event for each address.
func TestWritesToPoolsAreFew(t *testing.T) {
	s, p, m, kubeconfig := filledPools(t)
	if _, err := m.run(t.Context(), kubeconfig); err != nil {
		t.Fatal(err)
	}
	if err := s.check(t.Context()); err != nil {
		t.Error(err)
	}
	want := map[string]int{
		"patch ippools":                         fewEntries.pools,
		"patch overlappingrangeipreservations":  fewEntries.stale,
		"delete overlappingrangeipreservations": fewEntries.stale,
		"create leases":                         1, // the lock
		"update leases":                         1,
		"create configmaps":                     2, // ledger and journal
		"create events":                         fewEntries.stale,
	}
	if diff := cmp.Diff(want, p.Mutations()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// BenchmarkRun is one run of the binary that releases 60 entries and 60
// allocations.
func BenchmarkRun(b *testing.B) {
	s, p, m, kubeconfig := filledPools(b)
	p.Reset()
	peak := 0
	for b.Loop() {
		b.StopTimer()
		if err := s.leak(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		c, err := m.run(b.Context(), kubeconfig)
		if err != nil {
			b.Fatal(err)
		}
		peak = max(peak, c.peak)
	}
	b.ReportMetric(float64(len(p.Requests()))/float64(b.N), "requests/op")
	b.ReportMetric(float64(peak)/1024, "peak-MiB")
	if err := s.check(b.Context()); err != nil {
		b.Error(err)
	}
}
