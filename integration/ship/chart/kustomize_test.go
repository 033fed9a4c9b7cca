package chart_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
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
		{"large ledger", "ledger: {large: true}", []kustomization{{[]string{"cronjob"}, []string{"large"}}}},
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
	kubectl, err := assets.Path("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// Kustomize takes no absolute paths.
	folder, err := filepath.Abs(filepath.Join(deploy, "kustomize"))
	if err != nil {
		t.Fatal(err)
	}
	if folder, err = filepath.Rel(dir, folder); err != nil {
		t.Fatal(err)
	}
	file := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
	for field, list := range map[string][]string{"resources": k.resources, "components": k.components} {
		var paths []string
		for _, entry := range list {
			if field == "components" {
				entry = filepath.Join(field, entry)
			}
			paths = append(paths, filepath.Join(folder, entry))
		}
		file[field] = paths
	}
	data, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), kubectl, "kustomize", dir)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("kubectl kustomize of %v: %v\n%s", k, err, &stderr)
	}
	return stdout.String()
}
