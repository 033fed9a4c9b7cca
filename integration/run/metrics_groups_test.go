package run_test

import (
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// document tells how to delete what a cluster has pushed.
const document = "../../docs/metrics.md"

// Clusters that share a gateway have a group each, and one knows nothing of the other.
func TestGroupsOfClusters(t *testing.T) {
	f := newMetricsFixture(t)
	f.leak("web-0")
	prod := f.push(f.gateway.url+"/metrics/job/ip-reaper/cluster/prod", patient).EndT(f, reap.ExitDone).Report
	west := f.push(f.gateway.url+"/metrics/job/ip-reaper/cluster/we%2Fst", atOnce).EndT(f, reap.ExitDone).Report
	f.gateway.want(figures{})
	f.wantSuccess(time.Time{})
	f.gateway.want(f.figuresOf(prod, reap.ExitDone), `cluster="prod"`)
	f.wantSuccess(prod.Run.FinishedAt, `cluster="prod"`)

	// By the commands of the document the one is gone, and the other stays.
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
	f.wantSuccess(time.Time{}, `cluster="prod"`)
	f.gateway.want(f.figuresOf(west, reap.ExitDone), `cluster="we/st"`)
	f.wantSuccess(west.Run.FinishedAt, `cluster="we/st"`)
}
