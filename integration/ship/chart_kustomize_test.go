package ship_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// etcdValues are the endpoints of components/calico-etcd.
const etcdValues = `
backends:
  calico:
    datastore: etcdv3
    etcd: {endpoints: ["https://etcd-1.example.com:2379", "https://etcd-2.example.com:2379"]}
`

// metricsValues is the URL of components/metrics.
const metricsValues = `
metrics:
  pushURL: http://pushgateway.monitoring.svc:9091
`

// The chart makes the objects of Kustomize. So what integration/ship proves of these holds of
// the chart, too.
func TestRendersTheObjectsOfKustomize(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values string
		want   []overlay
	}{
		{"plan", "", []overlay{of()}},
		{"release", "mode: release", []overlay{of("release")}},
		{"outage", "outage: {enabled: true}", []overlay{of(), {Resources: []string{"job"}}}},
		{"host network", "hostNetwork: true\noutage: {enabled: true}", []overlay{of("host-network"), {Resources: []string{"job"}}}},
		{"restore", "mode: release\nrestore: {enabled: true}", []overlay{of("release", "restore")}},
		{"openshift", "openshift: {enabled: true}\noutage: {enabled: true}", []overlay{
			of("openshift"), {Resources: []string{"job"}, Components: []string{"openshift"}},
		}},
		{"network policy with etcd", "networkPolicy: {enabled: true}\n" + etcdValues, []overlay{
			of("network-policy", "calico-etcd"),
		}},
		{"network policy with metrics", "networkPolicy: {enabled: true}\n" + metricsValues, []overlay{
			of("network-policy", "metrics"),
		}},
		{"CAs of the gateway", metricsValues + "  caBundle: {configMap: ip-reaper-ca}", []overlay{
			of("metrics", "ca-bundle"),
		}},
		{"without policies", "admissionPolicies: {enabled: false}", []overlay{of("no-admission")}},
		{"monitoring", `metrics: {pushURL: "http://pushgateway.monitoring.svc:9091", prometheusRule: {enabled: true}, dashboard: {enabled: true}}`, []overlay{
			of("metrics", "prometheus-rules", "grafana-dashboard"),
		}},
		{
			"all of it", "mode: release\noutage: {enabled: true}\n" + etcdValues + metricsValues,
			[]overlay{
				of("release", "calico-etcd", "metrics"),
				{Resources: []string{"job"}, Components: []string{"calico-etcd", "metrics"}},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := make(map[string]unstructured.Unstructured)
			for _, k := range tt.want {
				maps.Copy(want, decode(t, build(t, k.write(t))))
			}
			// Helm makes the namespace itself, with --create-namespace.
			if _, ok := want["Namespace /"+chartName]; !ok {
				t.Error("Kustomize has no Namespace any more")
			}
			delete(want, "Namespace /"+chartName)
			got := theRelease.objects(t, tt.values)
			if diff := cmp.Diff(comparison(t, want), comparison(t, got)); diff != "" {
				t.Errorf("objects (-kustomize +helm):\n%s", diff)
			}
		})
	}
}
