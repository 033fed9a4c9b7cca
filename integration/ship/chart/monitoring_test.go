package chart_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The rule alerts on what is pushed only if something is, and knows the CronJob by its name. It and
// the dashboard have the labels by which they are found.
func TestMonitoringIsForWhatIsThere(t *testing.T) {
	const both = "groups ip-reaper ip-reaper-jobs"
	for _, tt := range []struct {
		name, values string
		want         []string // parts of the rule, and then of the dashboard
	}{
		{"by default", "", nil},
		{"alone", "metrics: {prometheusRule: {enabled: true, labels: {release: prometheus}}}", []string{
			"groups ip-reaper-jobs", `cronjob=~".*ip-reaper"`, "label release prometheus", "label app.kubernetes.io/name ip-reaper",
		}},
		{"with a Secret", "metrics: {pushURLSecret: {name: url}, prometheusRule: {enabled: true}}", []string{both}},
		{"with files of nodes", "node: {enabled: true, metricsFolder: /var/lib/node_exporter}\nmetrics: {prometheusRule: {enabled: true}}", []string{both}},
		{"by another name", "fullnameOverride: reap\nmetrics: {prometheusRule: {enabled: true}}", []string{`cronjob=~".*reap"`}},
		{"dashboard", "metrics: {dashboard: {enabled: true, annotations: {grafana_folder: Networking}}}", []string{
			"label grafana_dashboard 1", "annotation grafana_folder Networking",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for key, object := range home.objects(t, tt.values) {
				if strings.HasPrefix(key, "PrometheusRule ") || strings.HasSuffix(key, "-dashboard") {
					got = append(got, partsOf(t, object)...)
				}
			}
			for _, part := range tt.want {
				if !slices.Contains(got, part) {
					t.Errorf("there is no %s in %q", part, got)
				}
			}
			if tt.want == nil && got != nil {
				t.Errorf("there is %q", got)
			}
		})
	}
}

// partsOf are the labels, annotations and groups of an object, and how its rules name CronJobs.
func partsOf(t *testing.T, object unstructured.Unstructured) []string {
	t.Helper()
	var parts []string
	for name, value := range object.GetLabels() {
		parts = append(parts, "label "+name+" "+value)
	}
	for name, value := range object.GetAnnotations() {
		parts = append(parts, "annotation "+name+" "+value)
	}
	groups, _, err := unstructured.NestedSlice(object.Object, "spec", "groups")
	must(t, err)
	names := "groups"
	for _, group := range groups {
		names += " " + group.(map[string]any)["name"].(string)
		for _, rule := range group.(map[string]any)["rules"].([]any) {
			expr := rule.(map[string]any)["expr"].(string)
			if _, after, found := strings.Cut(expr, "{"); found && strings.HasPrefix(after, "cronjob") {
				cronJob, _, _ := strings.Cut(after, "}")
				parts = append(parts, cronJob)
			}
		}
	}
	return append(parts, names)
}
