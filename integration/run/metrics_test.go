package run_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A metricsFixture is a fixture with a gateway, and a file for the same figures.
type metricsFixture struct {
	*fixture
	gateway *gateway
	file    string
}

func newMetricsFixture(t *testing.T) *metricsFixture {
	t.Helper()
	f := &metricsFixture{fixture: newFixture(t), gateway: startGateway(t), file: filepath.Join(t.TempDir(), "ip-reaper.prom")}
	f.network = wide
	return f
}

// push runs the reaper with a policy. Figures go to the URL and into the file.
func (f *metricsFixture) push(code int, pushURL, policy string) reap.Result {
	f.Helper()
	f.env = []string{"IP_REAPER_PUSH_URL=" + pushURL}
	return f.reap(code, policy, "--metrics-file="+f.file)
}

// inFile returns the figures in the file.
func (f *metricsFixture) inFile() figures {
	f.Helper()
	text, err := os.ReadFile(f.file)
	f.must(err)
	return parse(f.T, string(text))
}

// A gateway has the same figures of the last run as a file: what is gone from the cluster, and what
// a run could not know, is gone, and the last success stays (promise 11). reaper/metrics proves the
// names and values.
func TestGatewayHasTheFiguresOfTheLastRun(t *testing.T) {
	f := newMetricsFixture(t)
	f.live("web-0")
	f.leak("web-1")
	report := f.push(reap.ExitDone, f.gateway.url, atOnce).Report
	f.gateway.want(f.inFile())
	_, pool, _ := strings.Cut(report.Pools[0].Name, "/")
	allocated := len(f.inFile())
	f.must(f.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Delete(t.Context(), pool, metav1.DeleteOptions{}))
	f.push(reap.ExitDone, f.gateway.url, atOnce)
	f.gateway.want(f.inFile())
	if now := len(f.inFile()); now >= allocated {
		t.Errorf("%d figures without the pool, and %d with it", now, allocated)
	}

	const success = "ip_reaper_last_success_timestamp_seconds{}"
	last := f.inFile()[success]
	f.toReaper.Before(proxy.On("list pods"), proxy.Always(proxy.Forbidden()))
	f.push(reap.ExitError, f.gateway.url, atOnce)
	f.gateway.want(f.inFile())
	if now := f.inFile(); now[success] != last || last == 0 || now["ip_reaper_run_exit_code{}"] != reap.ExitError {
		t.Errorf("after a failure the figures are %v, and the last success was %v", now, last)
	}
}

// Clusters that share a gateway have separate groups. The commands in the document delete one and
// keep the other.
func TestGroupsOfClusters(t *testing.T) {
	const document = "../../docs/metrics.md"
	f := newMetricsFixture(t)
	f.leak("web-0")
	f.push(reap.ExitDone, f.gateway.url+"/metrics/job/ip-reaper/cluster/prod", patient)
	f.gateway.want(f.inFile(), `cluster="prod"`)
	f.push(reap.ExitDone, f.gateway.url+"/metrics/job/ip-reaper/cluster/we%2Fst", atOnce)
	f.gateway.want(figures{})

	text, err := os.ReadFile(document)
	f.must(err)
	commands := regexp.MustCompile(`curl -X DELETE http://pushgateway:9091(\S+)`).FindAllStringSubmatch(string(text), -1)
	if len(commands) != 2 {
		t.Fatalf("%s deletes %q, want a group and that of its success", document, commands)
	}
	for _, path := range commands {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, f.gateway.url+path[1], nil)
		f.must(err)
		response, err := http.DefaultClient.Do(request)
		f.must(err)
		f.must(response.Body.Close())
	}
	f.gateway.want(figures{}, `cluster="prod"`)
	f.gateway.want(f.inFile(), `cluster="we/st"`)
}
