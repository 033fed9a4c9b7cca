package metrics_test

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
	s := newScene(t)
	s.live("web-0")
	s.leak("web-1")
	before := s.reap(reap.ExitDone, atOnce)
	if len(before.Pools) != 1 {
		t.Fatalf("pools %+v, want one", before.Pools)
	}
	s.gateway.want(s.figuresOf(before, reap.ExitDone))

	_, pool, _ := strings.Cut(before.Pools[0].Name, "/")
	s.must(s.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Delete(t.Context(), pool, metav1.DeleteOptions{}))
	poolless := s.reap(reap.ExitDone, atOnce)
	if len(poolless.Pools) != 0 {
		t.Fatalf("pools %+v, want none", poolless.Pools)
	}
	s.gateway.want(s.figuresOf(poolless, reap.ExitDone))

	const off = header + "backends: {calico: {enabled: false}, whereabouts: {enabled: false}, overlapping: {enabled: false}}\n"
	skipped := s.reap(reap.ExitDone, off)
	s.gateway.want(s.figuresOf(skipped, reap.ExitDone))
	if all, _ := s.gateway.scrape(); len(all) != 5+3*4 {
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
	s := newScene(t)
	s.live("web-0")
	s.leak("web-1")
	s.leak("web-2")
	success := s.reap(reap.ExitDone, patient).Run.FinishedAt

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
		{"nobody can be asked", reap.ExitError, atOnce, "list pods", `ip_reaper_allocations{backend="whereabouts",verdict="held"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.toReaper.Reset()
			s.toReaper.Before(proxy.On(tt.fails), proxy.Always(proxy.Forbidden()))
			report := s.reap(tt.exit, tt.policy)
			s.gateway.want(s.figuresOf(report, tt.exit))
			s.wantSuccess(success)
			if all, _ := s.gateway.scrape(); tt.gone != "" {
				if figure, ok := all[tt.gone]; ok {
					t.Errorf("%s is %v, and nobody can know", tt.gone, figure)
				}
			}
		})
	}
	s.toReaper.Reset()
	recovered := s.reap(reap.ExitDone, atOnce)
	s.gateway.want(s.figuresOf(recovered, reap.ExitDone))
	s.wantSuccess(recovered.Run.FinishedAt)
}

// A run that finds another one going on leaves its figures to that.
func TestRunThatIsLockedOutPushesNothing(t *testing.T) {
	s := newScene(t)
	s.leak("web-0")
	gate := proxy.NewGate()
	s.toReaper.Before(proxy.First(1, proxy.On("list pods")), gate.Hook)
	first := s.start(s.gateway.url, atOnce)
	<-gate.Arrived()
	s.reap(reap.ExitLocked, atOnce)
	s.gateway.want(figures{})
	s.wantSuccess(time.Time{})
	gate.Open()
	s.gateway.want(s.figuresOf(first.EndT(s, reap.ExitDone).Report, reap.ExitDone))
}
