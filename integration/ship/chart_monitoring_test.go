package ship_test

import (
	"strings"
	"testing"
)

// The rule alerts on what is pushed only if something is, and knows the CronJob by its name. It and
// the dashboard have the labels by which they are found.
func TestMonitoringIsForWhatIsThere(t *testing.T) {
	const pushed, cronJob = "alert: IPReaperNoFigures\n", `cronjob=~".*ip-reaper"`
	for _, tt := range []struct {
		name, values string
		want         []string // in the manifest
		lacks        string
	}{
		{"by default", "", nil, "kind:"},
		{
			"alone", "metrics: {prometheusRule: {enabled: true, labels: {release: prometheus}}}",
			[]string{cronJob, "    release: prometheus\n", "    app.kubernetes.io/name: ip-reaper\n"}, pushed,
		},
		{"with a Secret", "metrics: {pushURLSecret: {name: url}, prometheusRule: {enabled: true}}", []string{pushed, cronJob}, "kind: ConfigMap"},
		{
			"with files of nodes", "node: {enabled: true, metricsFolder: /var/lib/node_exporter}\nmetrics: {prometheusRule: {enabled: true}}",
			[]string{pushed, cronJob}, "kind: ConfigMap",
		},
		{
			"with pages elsewhere", "metrics: {pushURL: \"http://a\", prometheusRule: {enabled: true, runbooks: \"https://wiki.example/\"}}",
			[]string{"runbook_url: https://wiki.example/outage.md#if-an-address-is-not-released\n"}, "runbook_url: https://github.com",
		},
		{"by another name", "fullnameOverride: reap\nmetrics: {prometheusRule: {enabled: true}}", []string{`cronjob=~".*reap"`}, cronJob},
		{
			"dashboard", "metrics: {dashboard: {enabled: true, annotations: {grafana_folder: Networking}}}",
			[]string{"    grafana_dashboard: \"1\"\n", "    grafana_folder: Networking\n"}, "kind: PrometheusRule",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files, err := theRelease.render(t, values(t, tt.values))
			must(t, err)
			got := files["monitoring.yaml"]
			for _, part := range tt.want {
				if !strings.Contains(got, part) {
					t.Errorf("there is no %q", part)
				}
			}
			if strings.Contains(got, tt.lacks) {
				t.Errorf("there is %q", tt.lacks)
			}
		})
	}
}
