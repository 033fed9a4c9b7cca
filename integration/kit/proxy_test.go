package kit_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// startProxy returns a proxy before the cluster.
func startProxy(t *testing.T) (*cluster.Cluster, *proxy.Proxy) {
	t.Helper()
	c := cluster.StartT(t)
	p, err := proxy.Start(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return c, p
}

func clientOf(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestProxyCountsByVerbAndResource(t *testing.T) {
	for _, tt := range []struct{ name, contentType string }{
		{"JSON", "application/json"},
		{"protobuf", "application/vnd.kubernetes.protobuf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, p := startProxy(t)
			ctx := t.Context()
			cfg := p.Config(c.Config)
			cfg.ContentType = tt.contentType
			configs := clientOf(t, cfg).CoreV1().ConfigMaps(c.Namespace(t))
			made, err := configs.Create(ctx, configMap("a"), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			made.Data = map[string]string{"key": "value"}
			if _, err := configs.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := configs.Create(ctx, configMap("b"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Fatal(err)
			}
			list, err := configs.List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || list.Items[0].Data["key"] != "value" {
				t.Errorf("listed %v, want what was written", list.Items)
			}
			counts := map[string]int{"create configmaps": 2, "update configmaps": 1, "list configmaps": 1}
			if diff := cmp.Diff(counts, p.Counts()); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			mutations := map[string]int{"create configmaps": 1, "update configmaps": 1}
			if diff := cmp.Diff(mutations, p.Mutations()); diff != "" {
				t.Errorf("mutations (-want +got):\n%s", diff)
			}
			if update := p.Requests()[1]; update.Mutation != 2 || !bytes.Contains(update.Body, []byte("value")) {
				t.Errorf("mutation %d with body %q, want the second with the value", update.Mutation, update.Body)
			}
		})
	}
}
