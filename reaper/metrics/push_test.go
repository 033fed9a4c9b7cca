package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/metrics"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A fakeGateway records each push: a line for the request, and the metrics as
// Prometheus reads them.
type fakeGateway struct {
	*testing.T
	pushed   bytes.Buffer
	families []*dto.MetricFamily
	users    []string
}

func (c *fakeGateway) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	c.users = append(c.users, user+" "+password)
	fmt.Fprintf(&c.pushed, "%s %s\n", r.Method, r.URL.EscapedPath())
	decoder := expfmt.NewDecoder(r.Body, expfmt.ResponseFormat(r.Header))
	for {
		family := new(dto.MetricFamily)
		if err := decoder.Decode(family); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			c.Error(err)
			return
		}
		c.families = append(c.families, family)
		if _, err := expfmt.MetricFamilyToText(&c.pushed, family); err != nil {
			c.Error(err)
		}
	}
}

// push pushes a report to the path of a server.
func push(t *testing.T, path string, r report.Report, exitCode int) *fakeGateway {
	t.Helper()
	c := &fakeGateway{T: t}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	gateway, err := metrics.ParseGateway(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Push(t.Context(), r, exitCode); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMetricsOfRuns(t *testing.T) {
	for _, tt := range []struct {
		name     string
		report   report.Report
		exitCode int
	}{
		{"everything", everything(), 0},
		{"dry_run", dryRun(), 0},
		{"no_census", noCensus(), 1},
		{"a_store_failed_after_releases", failedLate(), 3},
		{"many_pools", manyPools(101), 0},
		{"odd_names", oddNames(), 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := push(t, "", tt.report, tt.exitCode).pushed.Bytes()
			golden := filepath.Join("testdata", tt.name+".txt")
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("pushed (-want +got):\n%s", diff)
			}
		})
	}
}

// The sum is unknown if one part is unknown. A closed network has no free addresses of its own.
func TestSumOfNetworksNeedsThemAll(t *testing.T) {
	var r report.Report
	for i := range 101 {
		r.Networks = append(r.Networks, report.NetworkReport{
			Backend: "calico", Name: fmt.Sprint("net-", i), Range: fmt.Sprintf("10.%d.0.0/24", i),
			Usage: report.Usage{Capacity: big.NewInt(256), Used: 2, Free: big.NewInt(254)},
		})
	}
	free := func() (sum string) {
		for _, family := range push(t, "", r, 0).families {
			if name := family.GetName(); name == "ip_reaper_network_free" || name == "ip_reaper_network_allocated" {
				for _, m := range family.GetMetric() {
					sum += fmt.Sprint(strings.TrimPrefix(name, "ip_reaper_network_"), " ", m.GetLabel()[1].GetValue(), " ", m.GetGauge().GetValue(), "\n")
				}
			}
		}
		return sum
	}
	if got, want := free(), "allocated (all) 202\nfree (all) 25654\n"; got != want {
		t.Errorf("sums:\n%swant:\n%s", got, want)
	}
	r.Networks[0].Closed, r.Networks[0].Free = "disabled", new(big.Int)
	if got, want := free(), "allocated (all) 202\nfree (all) 25400\n"; got != want {
		t.Errorf("sums with a closed network:\n%swant:\n%s", got, want)
	}
	r.Networks[1].Free = nil
	if got, want := free(), "allocated (all) 202\n"; got != want {
		t.Errorf("sums with an unknown network:\n%swant:\n%s", got, want)
	}
}

// However many nodes have leaks, the metrics have at most 21 series for them, and none is lost.
func TestLeaksOfManyNodesAreSummedUp(t *testing.T) {
	r := everything()
	ofNodes, want := map[string]int{"": 30}, map[string]float64{"(unknown)": 30, "(others)": 1 + 2 + 3 + 4 + 5 + 6}
	for n := 1; n <= 25; n++ {
		ofNodes[fmt.Sprint("node-", n)] = n
		if n > 6 {
			want[fmt.Sprint("node-", n)] = float64(n)
		}
	}
	r.Entries = leaks(ofNodes)
	got := make(map[string]float64)
	for _, family := range push(t, "", r, 0).families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "ip_reaper_node_leaked" {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leaks by node (-want +got):\n%s", diff)
	}
}

// A counter that said when it began would begin anew with each push, and Prometheus would count all
// of it again. Names that are the same once they are printable are one.
func TestCountersGoOnFromPushToPush(t *testing.T) {
	r := oddNames()
	r.Totals = &ledger.Totals{Released: map[string]uint64{"a\xffb": 2, `a\xffb`: 3}}
	got := make(map[string]float64)
	for _, family := range push(t, "", r, 0).families {
		for _, m := range family.GetMetric() {
			if family.GetType() != dto.MetricType_COUNTER {
				continue
			}
			if m.GetCounter().GetCreatedTimestamp() != nil {
				t.Errorf("%s says when it began", family.GetName())
			}
			got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	want := map[string]float64{`a\xffb`: 5, "done": 0, "partial": 0, "refused": 0, "interrupted": 0, "failed": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func TestInterruptedRunStillPushes(t *testing.T) {
	c := &fakeGateway{T: t}
	server := httptest.NewServer(c)
	defer server.Close()
	gateway, err := metrics.ParseGateway(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := gateway.Push(ctx, everything(), 130); err != nil || c.pushed.Len() == 0 {
		t.Errorf("pushed %d bytes, %v", c.pushed.Len(), err)
	}
}
