package metrics

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// pushTimeout bounds how long a run goes on for its figures alone.
const pushTimeout = 10 * time.Second

// Push replaces the figures of the gateway's group by those of a run that ended with
// the exit code. When the last run ended that exited with 0 is in a group of its own,
// with the label outcome, and stays otherwise. It also pushes when ctx has ended, and
// gives up after 10 seconds.
//
// The group is replaced as a whole (Push, not Add). Add replaces figures by their
// name, and what has none left would stay: of a pool that is gone, of a store that
// cannot be read any more.
func (g Gateway) Push(ctx context.Context, r reaper.Report, exitCode int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pushTimeout)
	defer cancel()
	if err := g.pusher(figures(r, exitCode)).PushContext(ctx); err != nil {
		return fmt.Errorf("push figures: %w", err)
	}
	if exitCode != 0 {
		return nil
	}
	if err := g.pusher(success(r)).Grouping(labelOutcome, "success").AddContext(ctx); err != nil {
		return fmt.Errorf("push the time of success: %w", err)
	}
	return nil
}

// pusher pushes what there is to gather.
func (g Gateway) pusher(figures prometheus.Gatherer) *push.Pusher {
	p := push.New(g.url, g.job).Client(courier{}).Gatherer(figures)
	for _, pair := range g.grouping {
		p.Grouping(pair[0], pair[1])
	}
	if g.user != nil {
		password, _ := g.user.Password()
		p.BasicAuth(g.user.Username(), password)
	}
	return p
}

// maxAnswer is how much of an answer is read, in bytes: an error has all of it.
const maxAnswer = 1 << 10

// A courier goes to the gateway and nowhere else. A redirection would make a GET of
// the push, and the page behind it look like success.
type courier struct{}

// Do sends a request. The body of the answer ends after maxAnswer.
func (courier) Do(request *http.Request) (*http.Response, error) {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	response.Body = excerpt{io.LimitReader(response.Body, maxAnswer), response.Body}
	return response, nil
}

// An excerpt is the beginning of a body.
type excerpt struct {
	io.Reader
	io.Closer
}
