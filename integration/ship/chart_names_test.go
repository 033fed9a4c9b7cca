package ship_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// Names and namespaces are strings, also where YAML takes them for something else.
func TestNamesThatYAMLTakesForSomethingElse(t *testing.T) {
	const all = "outage: {enabled: true}\nrestore: {enabled: true}\nadmissionPolicies: {enabled: true}\nnetworkPolicy: {enabled: true}\nfullnameOverride: \"1e3\"\n"
	objects := target{"123", "456"}.objects(t, all)
	if _, ok := objects["ConfigMap 456/"+state.PolicyName]; !ok {
		t.Errorf("a run from a workstation does not find the policy: there is no ConfigMap %s", state.PolicyName)
	}
	for key, o := range objects {
		metadata, _ := o.Object["metadata"].(map[string]any)
		if _, ok := metadata["name"].(string); !ok {
			t.Errorf("%s: name = %#v", key, metadata["name"])
		}
		if n, ok := metadata["namespace"]; ok && n != "456" && n != "1e3-outage" {
			t.Errorf("%s: namespace = %#v", key, n)
		}
		labels, _ := metadata["labels"].(map[string]any)
		if labels["app.kubernetes.io/instance"] != "123" {
			t.Errorf("%s: instance = %#v", key, labels["app.kubernetes.io/instance"])
		}
		subjects, _ := o.Object["subjects"].([]any)
		for _, s := range subjects {
			subject, _ := s.(map[string]any)
			if _, ok := subject["name"].(string); !ok || subject["namespace"] != "456" && subject["namespace"] != "1e3-outage" {
				t.Errorf("%s: subject = %#v", key, subject)
			}
		}
	}
}
