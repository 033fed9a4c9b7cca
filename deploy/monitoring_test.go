package deploy_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the PrometheusRule anew")

// ruleHead is what the PrometheusRule has before the groups.
const ruleHead = `# The alerts of deploy/prometheus/alerts.yaml, which "go test ./deploy -update" writes here.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: ip-reaper
  namespace: ip-reaper
  labels:
    app.kubernetes.io/name: ip-reaper
spec:
`

// The PrometheusRule, which Kustomize and the chart install, has the alerts that promtool tests.
func TestPrometheusRuleHasTheTestedAlerts(t *testing.T) {
	const file = "helm/ip-reaper/monitoring/rules/prometheusrule.yaml"
	alerts, err := os.ReadFile("prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, groups, found := strings.Cut(string(alerts), "\ngroups:\n")
	if !found {
		t.Fatal("alerts.yaml has no groups")
	}
	want := ruleHead + "  groups:\n"
	for line := range strings.Lines(groups) {
		if line != "\n" {
			want += "  "
		}
		want += line
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
