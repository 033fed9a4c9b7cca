package metrics_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Clusters that share a gateway have a group each, and one knows nothing of the other.
func TestGroupsOfClusters(t *testing.T) {
	s := newScene(t)
	s.leak("web-0")
	prod := s.start(s.gateway.url+"/metrics/job/ip-reaper/cluster/prod", patient).EndT(s, reap.ExitDone).Report
	west := s.start(s.gateway.url+"/metrics/job/ip-reaper/cluster/we%2Fst", atOnce).EndT(s, reap.ExitDone).Report
	s.gateway.want(figures{})
	s.wantSuccess(time.Time{})
	s.gateway.want(s.figuresOf(prod, reap.ExitDone), `cluster="prod"`)
	s.wantSuccess(prod.Run.FinishedAt, `cluster="prod"`)

	// By the commands of the document the one is gone, and the other stays.
	commands := regexp.MustCompile(`curl -X DELETE http://pushgateway:9091(\S+)`).FindAllStringSubmatch(read(t, document), -1)
	if len(commands) != 2 {
		t.Fatalf("%s deletes %q, want a group and that of its success", document, commands)
	}
	for _, path := range commands {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.gateway.url+path[1], nil)
		s.must(err)
		response, err := http.DefaultClient.Do(request)
		s.must(err)
		s.must(response.Body.Close())
	}
	s.gateway.want(figures{}, `cluster="prod"`)
	s.wantSuccess(time.Time{}, `cluster="prod"`)
	s.gateway.want(s.figuresOf(west, reap.ExitDone), `cluster="we/st"`)
	s.wantSuccess(west.Run.FinishedAt, `cluster="we/st"`)
}
