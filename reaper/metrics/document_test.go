package metrics_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
)

// sumsOnly ends the help of each metric of pools or networks. The document says it once.
var sumsOnly = regexp.MustCompile(` For a backend with more than 100 (pool|network)s there is only the sum of each IP family, as (pool|network) \(all\)\.$`)

// The table in docs/metrics.md has the name, the labels and the help of every metric.
func TestDocumentHasEveryMetric(t *testing.T) {
	families := push(t, "", everything(), 0).families
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	var want []string
	for _, family := range families {
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", family.GetName(), strings.Join(labels, ", "), sumsOnly.ReplaceAllString(family.GetHelp(), "")))
	}
	document, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(document)) {
		if strings.HasPrefix(line, "| `ip_reaper_") {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/metrics.md (-want +got):\n%s", diff)
	}
}
