package run_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A gateway is a fixture with a real Pushgateway, and a file for the same figures.
type gateway struct {
	*fixture
	url  string
	file string
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{fixture: newFixture(t), file: filepath.Join(t.TempDir(), "ip-reaper.prom")}
	g.network = wide
	program, err := assets.Path("pushgateway")
	g.must(err)
	guarded, err := assets.StartGuard(t.TempDir())
	g.must(err)
	t.Cleanup(func() { g.must(guarded.Release()) })
	free, err := assets.ReservePort()
	g.must(err)
	process, err := guarded.Run("pushgateway", program, []string{"--web.listen-address=127.0.0.1:" + free}, nil)
	g.must(err)
	t.Cleanup(func() { g.must(process.Stop(30 * time.Second)) })
	g.url = "http://127.0.0.1:" + free
	cluster.AwaitT(t, "the gateway", func() bool {
		_, err := g.request(http.MethodGet, "/-/ready")
		return err == nil
	})
	return g
}

// request makes a request to the gateway, and returns the answer.
func (g *gateway) request(method, path string) (string, error) {
	request, err := http.NewRequestWithContext(g.Context(), method, g.url+path, nil)
	g.must(err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// push runs the reaper with a policy. Figures go to a path of the gateway and into the file.
func (g *gateway) push(code int, path, policy string) reap.Result {
	g.Helper()
	g.env = []string{"IP_REAPER_PUSH_URL=" + g.url + path}
	return g.reap(code, policy, "--metrics-file="+g.file)
}

// figures are values by name and labels, such as name{label="value"}.
type figures map[string]float64

// parse reads the figures of a text that have this label cluster, or none. It omits the labels of
// groups.
func (g *gateway) parse(text, of string) figures {
	g.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	g.must(err)
	all := figures{}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			is := ""
			for _, l := range metric.GetLabel() {
				switch l.GetName() {
				case "job", "instance", "outcome":
				case "cluster":
					is = l.GetValue()
				default:
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			if strings.HasPrefix(name, "ip_reaper_") && is == of {
				all[name+"{"+strings.Join(labels, ",")+"}"] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() // one of them is nil
			}
		}
	}
	return all
}

// inFile returns the figures in the file.
func (g *gateway) inFile() figures {
	g.Helper()
	text, err := os.ReadFile(g.file)
	g.must(err)
	return g.parse(string(text), "")
}

// want compares the gateway's figures of a cluster with these.
func (g *gateway) want(want figures, of string) {
	g.Helper()
	text, err := g.request(http.MethodGet, "/metrics")
	g.must(err)
	if diff := cmp.Diff(want, g.parse(text, of)); diff != "" {
		g.Errorf("figures of cluster %q (-want +got):\n%s", of, diff)
	}
}

// Prometheus sees in a counter how much several runs released, although each of them pushes its own
// figures in place of the last ones, and although the ledger that keeps the counter was deleted in
// between. A dry run that does not remember pushes none.
func TestCounterGoesOnFromRunToRun(t *testing.T) {
	g := newGateway(t)
	g.live("web-0")
	const counter = `ip_reaper_released_addresses_total{backend="whereabouts"}`
	var values []string
	pushed := func(want float64) {
		g.Helper()
		text, err := g.request(http.MethodGet, "/metrics")
		g.must(err)
		if !strings.Contains(text, "# TYPE ip_reaper_released_addresses_total counter\n") {
			t.Error("the gateway has no counter")
		}
		got := g.parse(text, "")[counter]
		if got != want {
			t.Errorf("%v addresses were released, want %v", got, want)
		}
		values = append(values, fmt.Sprintf("%vx9", got)) // for ten minutes
	}
	g.push(reap.ExitDone, "", atOnce)
	pushed(0)
	g.leak("web-1")
	g.leak("web-2")
	g.push(reap.ExitDone, "", atOnce)
	pushed(2)
	g.leak("web-3")
	g.push(reap.ExitDone, "", atOnce)
	pushed(3)
	g.must(g.Kube.CoreV1().ConfigMaps(home).Delete(t.Context(), "ip-reaper-ledger", metav1.DeleteOptions{}))
	g.leak("web-4")
	g.push(reap.ExitDone, "", atOnce)
	pushed(1)

	g.env = []string{"IP_REAPER_PUSH_URL=" + g.url + "/metrics/job/ip-reaper/cluster/dry"}
	g.reap(reap.ExitDone, atOnce, "--dry-run")
	text, err := g.request(http.MethodGet, "/metrics")
	g.must(err)
	if dry := g.parse(text, "dry"); len(dry) == 0 || dry[counter] != 0 {
		t.Errorf("a dry run pushed %v, want figures without counters", dry)
	} else if _, ok := dry[counter]; ok {
		t.Error("a dry run pushed a counter")
	}

	file := filepath.Join(t.TempDir(), "test.yaml")
	g.must(os.WriteFile(file, fmt.Appendf(nil, `
evaluation_interval: 1m
tests:
- interval: 1m
  input_series: [{series: '%s', values: '%s'}]
  promql_expr_test:
  - {expr: 'increase(%[1]s[1h])', eval_time: 39m, exp_samples: [{labels: '{backend="whereabouts"}', value: 4}]}
`, counter, strings.Join(values, " ")), 0o600))
	program, err := assets.Path("promtool")
	g.must(err)
	if out, err := exec.CommandContext(t.Context(), program, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("the counter had %v: %v\n%s", values, err, out)
	}
}

// A gateway has the same figures of the last run as a file: what is gone from the cluster, and what
// a run could not know, is gone, and the last success stays (promise 11). Clusters that share a
// gateway have separate groups, and the commands in the document delete one. reaper/metrics proves
// the names and values.
func TestGatewayHasTheFiguresOfTheLastRun(t *testing.T) {
	g := newGateway(t)
	g.live("web-0")
	g.leak("web-1")
	report := g.push(reap.ExitDone, "", atOnce).Report
	g.want(g.inFile(), "")
	_, pool, _ := strings.Cut(report.Pools[0].Name, "/")
	allocated := len(g.inFile())
	g.must(g.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Delete(t.Context(), pool, metav1.DeleteOptions{}))
	g.push(reap.ExitDone, "", atOnce)
	g.want(g.inFile(), "")
	if now := len(g.inFile()); now >= allocated {
		t.Errorf("%d figures without the pool, and %d with it", now, allocated)
	}

	const success = "ip_reaper_last_success_timestamp_seconds{}"
	last := g.inFile()[success]
	g.toReaper.Before(proxy.On("list pods"), proxy.Always(proxy.Forbidden()))
	g.push(reap.ExitError, "", atOnce)
	failed := g.inFile()
	g.want(failed, "")
	if failed[success] != last || last == 0 || failed["ip_reaper_run_exit_code{}"] != reap.ExitError {
		t.Errorf("after a failure the figures are %v, and the last success was %v", failed, last)
	}

	g.toReaper.Reset()
	g.push(reap.ExitDone, "/metrics/job/ip-reaper/cluster/prod", patient)
	g.want(g.inFile(), "prod")
	g.push(reap.ExitDone, "/metrics/job/ip-reaper/cluster/we%2Fst", atOnce)
	g.want(failed, "")
	const document = "../../docs/metrics.md"
	text, err := os.ReadFile(document)
	g.must(err)
	commands := regexp.MustCompile(`curl -X DELETE http://pushgateway:9091(\S+)`).FindAllStringSubmatch(string(text), -1)
	if len(commands) != 2 {
		t.Fatalf("%s deletes %q, want a group and that of its success", document, commands)
	}
	for _, path := range commands {
		_, err := g.request(http.MethodDelete, path[1])
		g.must(err)
	}
	g.want(figures{}, "prod")
	g.want(g.inFile(), "we/st")
}
