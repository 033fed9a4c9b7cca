package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// What is gone from the cluster is gone from the gateway, also where nothing of its
// kind is left.
func TestStaleFiguresVanish(t *testing.T) {
	f := newMetricsFixture(t)
	f.live("web-0")
	f.leak("web-1")
	before := f.reap(reap.ExitDone, atOnce)
	if len(before.Pools) != 1 {
		t.Fatalf("pools %+v, want one", before.Pools)
	}
	f.gateway.want(f.figuresOf(before, reap.ExitDone))

	_, pool, _ := strings.Cut(before.Pools[0].Name, "/")
	f.must(f.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Delete(t.Context(), pool, metav1.DeleteOptions{}))
	poolless := f.reap(reap.ExitDone, atOnce)
	if len(poolless.Pools) != 0 {
		t.Fatalf("pools %+v, want none", poolless.Pools)
	}
	f.gateway.want(f.figuresOf(poolless, reap.ExitDone))

	const off = header + "backends: {calico: {enabled: false}, whereabouts: {enabled: false}, overlapping: {enabled: false}}\n"
	skipped := f.reap(reap.ExitDone, off)
	f.gateway.want(f.figuresOf(skipped, reap.ExitDone))
	if all, _ := f.gateway.scrape(); len(all) != 5+3*4 {
		t.Errorf("with every store disabled there are the figures %v, want those of the run and of 3 statuses", all)
	}
}

// Why a run does not add its figures to what stands in the gateway: adding replaces
// by name, and a name without a figure replaces nothing.
func TestAddingWouldLeaveStaleFigures(t *testing.T) {
	g := startGateway(t)
	add := func(pools ...string) {
		t.Helper()
		registry := prometheus.NewRegistry()
		allocated := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ip_reaper_pool_allocated"}, []string{"pool"})
		ended := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ip_reaper_run_exit_code"})
		registry.MustRegister(allocated, ended)
		for _, pool := range pools {
			allocated.WithLabelValues(pool).Set(1)
		}
		if err := push.New(g.url, "ip-reaper").Gatherer(registry).AddContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	add("a", "b")
	add("b")
	g.want(figures{`ip_reaper_pool_allocated{pool="b"}`: 1, "ip_reaper_run_exit_code{}": 0})
	add()
	g.want(figures{`ip_reaper_pool_allocated{pool="b"}`: 1, "ip_reaper_run_exit_code{}": 0})
}

// A run that fails says so, and the last success stays what it was. What it could not
// know it does not say (promise 11).
func TestSuccessIsToldOfRunsThatHadIt(t *testing.T) {
	f := newMetricsFixture(t)
	f.live("web-0")
	f.leak("web-1")
	f.leak("web-2")
	success := f.reap(reap.ExitDone, patient).Run.FinishedAt

	for _, tt := range []struct {
		name   string
		exit   int
		policy string
		fails  string // a request; empty for none
		gone   string // a figure that is not there any more
	}{
		{"a limit refuses", reap.ExitLimit, atOnce + "limits: {maxReleases: 1}\n", "", ""},
		{"a store cannot be read", reap.ExitPartial, atOnce, "list ippools", `ip_reaper_allocations{backend="whereabouts",verdict="inUse"}`},
		{"a release fails", reap.ExitPartial, atOnce, "patch ippools", ""},
		{"pods cannot be listed", reap.ExitError, atOnce, "list pods", `ip_reaper_allocations{backend="whereabouts",verdict="held"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f.toReaper.Reset()
			f.toReaper.Before(proxy.On(tt.fails), proxy.Always(proxy.Forbidden()))
			report := f.reap(tt.exit, tt.policy)
			f.gateway.want(f.figuresOf(report, tt.exit))
			f.wantSuccess(success)
			if all, _ := f.gateway.scrape(); tt.gone != "" {
				if figure, ok := all[tt.gone]; ok {
					t.Errorf("%s is %v, and the run cannot know it", tt.gone, figure)
				}
			}
		})
	}
	f.toReaper.Reset()
	recovered := f.reap(reap.ExitDone, atOnce)
	f.gateway.want(f.figuresOf(recovered, reap.ExitDone))
	f.wantSuccess(recovered.Run.FinishedAt)
}

// A run that finds another one going on leaves its figures to that.
func TestRunThatIsLockedOutPushesNothing(t *testing.T) {
	f := newMetricsFixture(t)
	f.leak("web-0")
	gate := proxy.NewGate()
	f.toReaper.Before(proxy.First(1, proxy.On("list pods")), gate.Hook)
	first := f.push(f.gateway.url, atOnce)
	<-gate.Arrived()
	f.reap(reap.ExitLocked, atOnce)
	f.gateway.want(figures{})
	f.wantSuccess(time.Time{})
	gate.Open()
	f.gateway.want(f.figuresOf(first.EndT(f, reap.ExitDone).Report, reap.ExitDone))
}
