package metrics

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// defaultJob is the job that figures have unless the URL names another.
const defaultJob = "ip-reaper"

// labelOutcome is what the time of the last success is grouped by beside the rest.
const labelOutcome = "outcome"

// taken are the labels by which nobody can group, since the figures have them.
var taken = []string{"job", labelBackend, labelDecision, labelStatus, labelPool, labelRange, labelVersion, labelOutcome}

// A Gateway is a Pushgateway, and the group there that a run writes. The zero Gateway
// is nowhere.
type Gateway struct {
	url      string // without credentials and group
	job      string
	grouping [][2]string // labels and their values
	user     *url.Userinfo
}

// ParseGateway reads the URL of a Pushgateway, such as http://pushgateway:9091. It
// may have the path of a group, as whoever pushes by hand writes it:
// /metrics/job/ip-reaper/cluster/prod. User and password are sent as basic
// authentication. They are in no error, nor is any other part of the URL that may
// turn out to be one of them.
func ParseGateway(text string) (Gateway, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return Gateway{}, errors.New("it is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return Gateway{}, errors.New("it does not begin with http:// or https://")
	case u.Hostname() == "":
		return Gateway{}, errors.New("it names no host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return Gateway{}, errors.New("nothing may follow the path: no ? and no #")
	}
	g := Gateway{job: defaultJob, user: u.User}
	prefix, group, grouped := strings.Cut(strings.TrimRight(u.EscapedPath(), "/"), "/metrics/job/")
	g.url = u.Scheme + "://" + u.Host + prefix
	switch {
	case grouped:
		err = g.groupBy(strings.Split(group, "/"))
	case strings.HasSuffix(prefix, "/metrics") || strings.HasSuffix(prefix, "/metrics/job"):
		err = errors.New("its path ends within /metrics/job/NAME: leave that out, or name the job")
	}
	return g, err
}

// Nowhere reports whether there is no gateway.
func (g Gateway) Nowhere() bool { return g.url == "" }

// groupBy takes a job and pairs of a label and its value out of a path.
func (g *Gateway) groupBy(parts []string) error {
	if len(parts)%2 == 0 {
		return errors.New("its path has a label without a value: it goes on as /metrics/job/NAME/LABEL/VALUE")
	}
	for i, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil || text == "" {
			return errors.New("its path has an empty part, or one that is escaped wrongly")
		}
		parts[i] = text
	}
	g.job = parts[0]
	for pair := range slices.Chunk(parts[1:], 2) {
		switch label := pair[0]; {
		case !model.LegacyValidation.IsValidLabelName(label) || strings.HasPrefix(label, model.ReservedLabelPrefix):
			return fmt.Errorf("%q in its path is no name of a label", label)
		case slices.Contains(taken, label) || slices.ContainsFunc(g.grouping, func(p [2]string) bool { return p[0] == label }):
			return fmt.Errorf("the label %q in its path is there already", label)
		}
		g.grouping = append(g.grouping, [2]string{pair[0], pair[1]})
	}
	return nil
}
