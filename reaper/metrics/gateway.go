package metrics

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// defaultJob is the value of the label job if the URL names none.
const defaultJob = "ip-reaper"

// labelOutcome is the additional label of the group with the time of the last success.
const labelOutcome = "outcome"

// taken are the labels of the metrics, by which a URL cannot group.
var taken = []string{"job", labelBackend, labelVerdict, labelStatus, labelPool, labelNetwork, labelRange, labelVersion, labelOutcome}

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
	case u.Scheme != "http" && u.Scheme != "https":
		return Gateway{}, errors.New("the URL does not begin with http:// or https://")
	case u.Hostname() == "":
		return Gateway{}, errors.New("the URL has no host")
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

// ofNode returns the gateway with the group of a node, so that nodes do not replace each
// other's metrics. It returns g if no node is named, or if the group has that label.
func (g Gateway) ofNode(node string) Gateway {
	named := func(pair [2]string) bool { return pair[0] == labelNode }
	if node != "" && !slices.ContainsFunc(g.grouping, named) {
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
