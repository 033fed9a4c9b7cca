package ship_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// comparison leaves out Helm's own labels, and reads the policies in ConfigMaps, whose
// comments and whose order of fields mean nothing.
func comparison(t *testing.T, objects map[string]unstructured.Unstructured) map[string]any {
	t.Helper()
	all := make(map[string]any)
	for key, object := range objects {
		withoutLabels(object.Object)
		if _, ok := object.Object["data"]; ok && object.GetKind() == "ConfigMap" && strings.HasSuffix(object.GetName(), "-policy") {
			object.Object["data"] = loadPolicies(t, object)
		}
		all[key] = object.Object
	}
	return all
}

// withoutLabels takes the labels of Helm's out of an object, and out of what it is a
// template of.
func withoutLabels(at any) {
	fields, ok := at.(map[string]any)
	if !ok {
		return
	}
	for field, value := range fields {
		if labels, ok := value.(map[string]any); ok && (field == "labels" || field == "matchLabels") {
			for _, label := range []string{
				"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart",
			} {
				delete(labels, label)
			}
		}
		withoutLabels(value)
	}
}

// loadPolicies loads the policies of a ConfigMap by file.
func loadPolicies(t *testing.T, configMap unstructured.Unstructured) map[string]policy.Policy {
	t.Helper()
	data, _, err := unstructured.NestedStringMap(configMap.Object, "data")
	must(t, err)
	if len(data) == 0 {
		t.Errorf("%s has no policy", configMap.GetName())
	}
	all := make(map[string]policy.Policy)
	for file, text := range data {
		p, err := policy.Load([]byte(text), plugin.Known(backends.All()))
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", configMap.GetName(), file, err, text)
		}
		all[file] = p
	}
	return all
}
