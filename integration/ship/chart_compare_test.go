package ship_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
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
		byUser(t, object)
		if _, ok := object.Object["data"]; ok && object.GetKind() == "ConfigMap" && strings.HasSuffix(object.GetName(), "-policy") {
			object.Object["data"] = loadPolicies(t, object)
		}
		all[key] = object.Object
	}
	return all
}

// byUser has a binding name each account by its user, as the bindings of Kustomize do.
func byUser(t *testing.T, binding unstructured.Unstructured) {
	t.Helper()
	subjects, found, err := unstructured.NestedSlice(binding.Object, "subjects")
	must(t, err)
	if !found {
		return
	}
	for i, one := range subjects {
		if s := one.(map[string]any); s["kind"] == rbacv1.ServiceAccountKind {
			user := fmt.Sprintf("system:serviceaccount:%s:%s", s["namespace"], s["name"])
			subjects[i] = map[string]any{"kind": rbacv1.UserKind, "apiGroup": rbacv1.GroupName, "name": user}
		}
	}
	must(t, unstructured.SetNestedSlice(binding.Object, subjects, "subjects"))
}

// withoutLabels takes the labels of Helm's out of an object, and out of what it is a template of. It takes
// out empty lists, too: an API server sees no difference.
func withoutLabels(at any) {
	if list, ok := at.([]any); ok {
		for _, one := range list {
			withoutLabels(one)
		}
	}
	fields, _ := at.(map[string]any)
	for field, value := range fields {
		if labels, ok := value.(map[string]any); ok && (field == "labels" || field == "matchLabels") {
			for _, label := range []string{
				"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart",
			} {
				delete(labels, label)
			}
		}
		if list, ok := value.([]any); value == nil || ok && len(list) == 0 {
			delete(fields, field)
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
