package run_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/guard"
)

// startTimeout is how long a gateway may take to start or to end.
const startTimeout = 30 * time.Second

// A gateway is a real Pushgateway.
type gateway struct {
	*testing.T
	url string
}

// startGateway starts a gateway that ends with the test.
func startGateway(t *testing.T) *gateway {
	t.Helper()
	program, err := assets.Path("pushgateway")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	g, err := guard.Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Release(); err != nil {
			t.Error(err)
		}
	})
	process, err := g.Run("pushgateway", program, []string{"--web.listen-address=127.0.0.1:0", "--log.format=json"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(startTimeout); err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if address := listening(process.Log()); address != "" {
			return &gateway{T: t, url: "http://" + address}
		}
	}
	t.Fatalf("the gateway does not listen:\n%s", process.Log())
	return nil
}

// listening returns the address that a program listens on according to its log.
func listening(log string) string {
	for line := range strings.Lines(log) {
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "Listening on" {
			return entry.Address
		}
	}
	return ""
}

// figures are values by name and labels, such as name{label="value"}.
type figures map[string]float64

// parse reads what Prometheus would read from the group with these labels besides the job, and from
// the group with the time of its last success. It omits the labels of groups.
func parse(t *testing.T, text string, group ...string) figures {
	t.Helper()
	all := figures{}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, family := range families {
		if !strings.HasPrefix(name, "ip_reaper_") {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels, by []string
			for _, l := range metric.GetLabel() {
				pair := fmt.Sprintf("%s=%q", l.GetName(), l.GetValue())
				switch l.GetName() {
				case "job", "instance", "outcome":
				case "cluster":
					by = append(by, pair)
				default:
					labels = append(labels, pair)
				}
			}
			if slices.Equal(by, group) {
				all[name+"{"+strings.Join(labels, ",")+"}"] = metric.GetGauge().GetValue()
			}
		}
	}
	return all
}

// want compares the gateway's figures with these.
func (g *gateway) want(want figures, group ...string) {
	g.Helper()
	if diff := cmp.Diff(want, parse(g.T, g.text(), group...)); diff != "" {
		g.Errorf("figures (-want +got):\n%s", diff)
	}
}

// text returns what Prometheus would read.
func (g *gateway) text() string {
	g.Helper()
	request, err := http.NewRequestWithContext(g.Context(), http.MethodGet, g.url+"/metrics", nil)
	if err != nil {
		g.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.Fatal(err)
	}
	return string(text)
}
