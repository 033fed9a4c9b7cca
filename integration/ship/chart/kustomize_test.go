package chart_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ip-reaper/ip-reaper/integration/ship/kustomize"
)

// kustomization names folders of deploy/kustomize.
type kustomization struct{ resources, components []string }

// etcdValues are the endpoints of components/calico-etcd.
const etcdValues = `
backends:
  calico:
    datastore: etcdv3
    etcd: {endpoints: ["https://etcd-1.example.com:2379", "https://etcd-2.example.com:2379"]}
`

// metricsValues is the URL of components/metrics.
const metricsValues = `
metrics: {pushURL: "http://pushgateway.monitoring.svc:9091"}
`

// The chart makes the objects of Kustomize. So what integration/ship proves of these holds of
// the chart, too.
func TestRendersTheObjectsOfKustomize(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values string
		want   []kustomization
	}{
		{"plan", "", []kustomization{{[]string{"cronjob"}, nil}}},
		{"release", "mode: release", []kustomization{{[]string{"cronjob"}, []string{"release"}}}},
		{"outage", "outage: {enabled: true}", []kustomization{{[]string{"cronjob"}, nil}, {[]string{"job"}, nil}}},
		{"restore", "mode: release\nrestore: {enabled: true}", []kustomization{{[]string{"cronjob"}, []string{"release", "restore"}}}},
		{"openshift", "openshift: {enabled: true}\noutage: {enabled: true}", []kustomization{
			{[]string{"cronjob"}, []string{"openshift"}}, {[]string{"job"}, []string{"openshift"}},
		}},
		{"network policy with etcd", "networkPolicy: {enabled: true}\n" + etcdValues, []kustomization{
			{[]string{"cronjob"}, []string{"network-policy", "calico-etcd"}},
		}},
		{"network policy with metrics", "networkPolicy: {enabled: true}\n" + metricsValues, []kustomization{
			{[]string{"cronjob"}, []string{"network-policy", "metrics"}},
		}},
		{"monitoring", `metrics: {pushURL: "http://pushgateway.monitoring.svc:9091", prometheusRule: {enabled: true}, dashboard: {enabled: true}}`, []kustomization{
			{[]string{"cronjob"}, []string{"metrics", "prometheus-rules", "grafana-dashboard"}},
		}},
		{
			"all of it", "mode: release\noutage: {enabled: true}\n" + etcdValues + metricsValues,
			[]kustomization{
				{[]string{"cronjob"}, []string{"release", "calico-etcd", "metrics"}},
				{[]string{"job"}, []string{"calico-etcd", "metrics"}},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := make(map[string]unstructured.Unstructured)
			for _, k := range tt.want {
				maps.Copy(want, decode(t, k.build(t)))
			}
			// Helm makes the namespace itself, with --create-namespace.
			if _, ok := want["Namespace /"+name]; !ok {
				t.Error("Kustomize has no Namespace any more")
			}
			delete(want, "Namespace /"+name)
			narrowed(t, want)
			got := home.objects(t, tt.values)
			if diff := cmp.Diff(comparison(t, want), comparison(t, got)); diff != "" {
				t.Errorf("objects (-kustomize +helm):\n%s", diff)
			}
		})
	}
}

// build has kubectl make the objects of a kustomization.
func (k kustomization) build(t *testing.T) string {
	t.Helper()
	return kustomize.Build(t, kustomize.Overlay{Resources: k.resources, Components: k.components}.Write(t))
}
