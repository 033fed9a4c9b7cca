package ship_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// applyManifests installs manifests as helm does, by server-side apply.
func applyManifests(t *testing.T, c *cluster.Cluster, manifests string) {
	t.Helper()
	out, err := c.Kubectl(t.Context(), manifests, "apply", "--server-side", "--field-manager=helm", "--validate=strict", "-f", "-")
	if err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
}

// longest is as long as helm lets the name of a release be.
var longest = strings.Repeat("a-very-long-name.", 4)[:52] + "z"

// The API server takes what the chart makes, also of the longest names.
func TestAPIServerAcceptsTheObjects(t *testing.T) {
	c := fresh(t)
	for _, tt := range []struct{ name, release, values string }{
		{"everything with etcd", chartName, everything + etcdValues + metricsValues},
		{"every field", chartName, everyField},
		{"another release", "prod", everything},
		{"a Secret with the URL", chartName, fullValues[1]},
		{"the longest name", longest, everything},
		{"the longest prefix", chartName, "fullnameOverride: " + strings.Repeat("a", 36) + "\n" + everything},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := target{tt.release, c.Namespace(t)}
			for _, object := range to.objects(t, tt.values) {
				if object.GetKind() == "Namespace" { // without it, there is no answer about what is in it
					must(t, c.CreateNamespace(t.Context(), object.GetName()))
				}
			}
			out, err := c.Kubectl(t.Context(), to.manifests(t, tt.values), "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
			if err != nil {
				t.Errorf("apply: %v\n%s", err, out)
			}
		})
	}
}

// The API server takes every value that there is, and keeps hostile texts as they are.
func TestAPIServerKeepsWhatValuesSay(t *testing.T) {
	c := fresh(t)
	hostile := strings.Join(slices.Concat(brokenTexts[:len(brokenTexts)-2], otherTexts), "") // no API takes NUL
	var given map[string]any
	must(t, yaml.Unmarshal([]byte(fullValues[0]), &given))
	given["metrics"].(node)["prometheusRule"] = node{"enabled": false} // the API server does not know its kind
	given["podAnnotations"] = node{"a": hostile}
	given["serviceAccount"] = node{"annotations": node{"a": hostile}}
	given["extraEnv"] = []node{{"name": "A", "value": hostile}}
	to := target{chartName, c.Namespace(t)}
	applyManifests(t, c, to.manifests(t, asJSON(t, given)))
	out, err := c.Kubectl(t.Context(), "", "-n", to.namespace, "get", "cronjobs,serviceaccounts", "-o", "json")
	must(t, err)
	var list unstructured.UnstructuredList
	must(t, list.UnmarshalJSON([]byte(out)))
	for _, object := range list.Items {
		switch object.GetKind() {
		case "CronJob":
			pod := convert[batchv1.CronJob](t, object).Spec.JobTemplate.Spec.Template
			containers := pod.Spec.Containers
			if env := containers[0].Env; pod.Annotations["a"] != hostile || env[len(env)-1].Value != hostile || len(containers) != 1 {
				t.Errorf("%s has the annotations %q, and %d containers with %v", object.GetName(), pod.Annotations, len(containers), env)
			}
		case "ServiceAccount":
			if got := object.GetAnnotations()["a"]; got != hostile && object.GetName() != "default" {
				t.Errorf("the account %s has the annotation %q", object.GetName(), got)
			}
		}
		if object.GetLabels()["every-common"] != "everyCommon" && object.GetName() != "default" {
			t.Errorf("%s %s has the labels %v", object.GetKind(), object.GetName(), object.GetLabels())
		}
	}
}

// Two releases in a cluster do not take each other's objects.
func TestNamesBeginWithTheRelease(t *testing.T) {
	for _, tt := range []struct{ release, name, prefix string }{
		{"ip-reaper", "ip-reaper", "ip-reaper"},
		{"ip-reaper-prod", "ip-reaper", "ip-reaper-prod"},
		{"prod", "ip-reaper", "prod-ip-reaper"},
		{"prod", "gc", "prod-gc"},
		{"a.b", "ip-reaper", "a.b-ip-reaper"},
		{strings.Repeat("a", 35) + ".b", "ip-reaper", strings.Repeat("a", 35)},
	} {
		to := target{tt.release, "elsewhere"}
		text := everything + "nameOverride: " + tt.name
		for key, object := range to.objects(t, text) {
			if got := object.GetLabels()["app.kubernetes.io/name"]; got != tt.name {
				t.Errorf("release %s: the label of %s says %s, want %s", tt.release, key, got, tt.name)
			}
			got := object.GetName()
			if object.GetKind() == "Namespace" && strings.HasPrefix(got, strings.ReplaceAll(tt.prefix, ".", "-")+"-") {
				continue // it has no dot
			}
			if got != tt.prefix && !strings.HasPrefix(got, tt.prefix+"-") && !strings.HasPrefix(got, "ip-reaper-ledger") && got != state.PolicyName {
				t.Errorf("release %s: %s does not begin with %s", tt.release, key, tt.prefix)
			}
		}
		// What the program calls so has the same name everywhere.
		for _, fixed := range []string{"resourceNames: [ip-reaper]\n", "resourceNames: [ip-reaper-ledger]\n"} {
			if !strings.Contains(to.manifests(t, text), fixed) {
				t.Errorf("release %s: there is no %q", tt.release, fixed)
			}
		}
	}
}
