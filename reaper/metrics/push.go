package metrics

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// pushTimeout limits how much a push can prolong a run.
const pushTimeout = 10 * time.Second

// Push replaces the metrics of the gateway's group with those of a run that ended with the exit
// code. On a node, the group has the label node, unless the URL gives it. The time of the last
// success has its own group, with the label outcome, which a run leaves as it is unless it exited
// with 0.
//
// Push works even after ctx has ended. It gives up after 10 seconds.
//
// The client's method Push replaces the whole group. Its method Add would keep the
// metrics of names that the new push does not have, such as those of a deleted pool.
func (g Gateway) Push(ctx context.Context, r report.Report, exitCode int) error {
	g = g.ofNode(r.Run.Node)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pushTimeout)
	defer cancel()
	run, metrics := newGauges("") // the group has the node
	run.all(r, exitCode)
	if err := g.pusher(metrics).PushContext(ctx); err != nil {
		return fmt.Errorf("push metrics: %w", err)
	}
	if exitCode != 0 {
		return nil
	}
	success, metrics := newGauges("")
	success.success(seconds(r.Run.FinishedAt))
	if err := g.pusher(metrics).Grouping(labelOutcome, "success").AddContext(ctx); err != nil {
		return fmt.Errorf("push the time of the last success: %w", err)
	}
	return nil
}

// pusher returns a pusher of the metrics.
func (g Gateway) pusher(metrics prometheus.Gatherer) *push.Pusher {
	p := push.New(g.url, g.job).Client(httpClient{}).Gatherer(metrics)
	for _, pair := range g.grouping {
		p.Grouping(pair[0], pair[1])
	}
	if g.user != nil {
		password, _ := g.user.Password()
		p.BasicAuth(g.user.Username(), password)
	}
	return p
}

// maxAnswer is how many bytes of an answer are read, because an error of the client
// quotes the whole answer.
const maxAnswer = 1 << 10

// An httpClient follows no redirection. A redirection could lead the credentials to
// another host, or to http. It would also turn the push into a GET, and the page behind
// it would look like success.
type httpClient struct{}

// Do sends a request. The body of the response ends after maxAnswer bytes.
func (httpClient) Do(request *http.Request) (*http.Response, error) {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	return response, nil
}
