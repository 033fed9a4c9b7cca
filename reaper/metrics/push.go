package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/prometheus/common/model"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// pushTimeout limits how much a push can prolong a run.
const pushTimeout = 10 * time.Second

// Push replaces the metrics of the gateway's group with those of a run that ended with the exit
// code. On a node, the group has the label node, unless the URL gives it. The time of the last
// success has its own group, with the label outcome, which a run leaves as it is unless it exited
// with 0.
//
// Push works even after ctx has ended. It gives up after 10 seconds, or ipam.Ending.
//
// The client's method Push replaces the whole group. Its method Add would keep the
// metrics of names that the new push does not have, such as those of a deleted pool.
func (g Gateway) Push(ctx context.Context, r report.Report, exitCode int) error {
	g = g.ofNode(r.Run.Node)
	ctx, cancel := ipam.Finish(ctx, pushTimeout)
	defer cancel()
	run, metrics := newGauges("") // the group has the node
	run.ofNode = g.ofNodes()
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

// defaultJob is the value of the label job if the URL names none.
const defaultJob = "ip-reaper"

// labelOutcome is the additional label of the group with the time of the last success.
const labelOutcome = "outcome"

// taken are the labels of the metrics, by which a URL cannot group.
var taken = []string{"job", labelBackend, labelVerdict, labelStatus, labelPool, labelNetwork, labelRange, labelVersion, labelOutcome, labelKind, labelProved, labelResult}

// A Gateway is a group of a Pushgateway. The zero Gateway means that nothing is pushed.
type Gateway struct {
	url      string // without credentials and group
	job      string
	grouping [][2]string // labels and their values
	user     *url.Userinfo
}

// ParseGateway reads the URL of a Pushgateway, such as http://pushgateway:9091. The URL
// may have the path of a group in the Pushgateway's own form, such as
// /metrics/job/ip-reaper/cluster/prod. User and password are sent as basic
// authentication, and only over https.
//
// No error quotes a part of the URL that may hold the password.
func ParseGateway(text string) (Gateway, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return Gateway{}, errors.New("this is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return Gateway{}, errors.New("the URL does not begin with http:// or https:// and a host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return Gateway{}, errors.New("the URL has a ? or a # after its path: leave that out")
	case u.User != nil && u.Scheme != "https":
		return Gateway{}, errors.New("the URL has a user, and http would send the password in the clear: use https://")
	}
	g := Gateway{job: defaultJob, user: u.User}
	prefix, group, grouped := strings.Cut(strings.TrimRight(u.EscapedPath(), "/"), "/metrics/job/")
	g.url = u.Scheme + "://" + u.Host + prefix
	switch {
	case grouped:
		err = g.groupBy(strings.Split(group, "/"))
	case strings.HasSuffix(prefix, "/metrics") || strings.HasSuffix(prefix, "/metrics/job"):
		err = errors.New("the path of the URL ends within /metrics/job/NAME: leave out /metrics, or name the job")
	}
	return g, err
}

// Nowhere reports whether g is the zero Gateway.
func (g Gateway) Nowhere() bool { return g.url == "" }

// ofNodes reports whether the group has the label node.
func (g Gateway) ofNodes() bool {
	return slices.ContainsFunc(g.grouping, func(pair [2]string) bool { return pair[0] == labelNode })
}

// ofNode returns the gateway with the group of a node, so that nodes do not replace each
// other's metrics. It returns g if no node is named, or if the group has that label.
func (g Gateway) ofNode(node string) Gateway {
	if node != "" && !g.ofNodes() {
		g.grouping = append(slices.Clone(g.grouping), [2]string{labelNode, node})
	}
	return g
}

// groupBy takes the job and the labels with their values from the parts of a path.
func (g *Gateway) groupBy(parts []string) error {
	if len(parts)%2 == 0 {
		return errors.New("the path of the URL has a label without a value: write /metrics/job/NAME/LABEL/VALUE")
	}
	for i, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil || text == "" {
			return errors.New("the path of the URL has an empty part, or a wrong escape sequence")
		}
		parts[i] = text
	}
	g.job = parts[0]
	for pair := range slices.Chunk(parts[1:], 2) {
		switch label := pair[0]; {
		case !model.LegacyValidation.IsValidLabelName(label) || strings.HasPrefix(label, model.ReservedLabelPrefix):
			return fmt.Errorf("the path of the URL has %q, which is not a valid label name", label)
		case slices.Contains(taken, label) || slices.ContainsFunc(g.grouping, func(p [2]string) bool { return p[0] == label }):
			return fmt.Errorf("the path of the URL has the label %q, which the metrics have already: choose another name", label)
		}
		g.grouping = append(g.grouping, [2]string{pair[0], pair[1]})
	}
	return nil
}

// maxFile is the largest size of a file of an earlier run, in bytes. A node has a few pools.
const maxFile = 4 << 20

// WriteFile replaces a file with the metrics of a run that ended with the exit code, in the
// form that the textfile collector of node_exporter reads. The file has mode 0644. A reader
// sees either the old file or the new one. On a node, every metric has the label node.
//
// A run that did not exit with 0 keeps the time of the last success from the old file.
func WriteFile(path string, r report.Report, exitCode int) error {
	return write(path, r.Run, exitCode, func(g gauges) { g.all(r, exitCode) })
}

// WriteEarly is WriteFile for a run that failed before it listed anything. The run has Node,
// Version and its times; whether it was meant as a dry run may be unknown.
func WriteEarly(path string, run report.RunInfo, exitCode int) error {
	return write(path, run, exitCode, func(g gauges) { g.ended(run, exitCode) })
}

// write writes the metrics that add adds, and the time of the last success.
func write(path string, run report.RunInfo, exitCode int, add func(gauges)) error {
	g, gatherer := newGauges(run.Node)
	add(g)
	if exitCode == 0 {
		g.success(seconds(run.FinishedAt))
	} else if at, ok := successIn(path); ok {
		g.success(at)
	}
	// The client writes a temporary file next to it. Its name does not end in .prom, so
	// node_exporter does not read it.
	if err := prometheus.WriteToTextfile(path, gatherer); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

// successIn returns the time of the last success that a file has.
func successIn(path string) (at float64, ok bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return 0, false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[0], namespace+"_"+lastSuccessName) {
			at, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			return at, err == nil
		}
	}
	return 0, false
}

// CheckFile returns an error if metrics cannot be written to a file: it is a folder, or the
// folder that it is in does not exist.
func CheckFile(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	_, err := os.Stat(filepath.Dir(path) + "/.") // not if it is a file
	return err
}
