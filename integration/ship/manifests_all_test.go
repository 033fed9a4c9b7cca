package ship_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The component adds the objects of the folder, each of them as it is there: no binding gives the
// account of the CronJob the rights of an outage.
func TestComponentIsTheFolderOfTheOutageJobs(t *testing.T) {
	want := render(t, shipped(t, "cronjob"))
	maps.Copy(want, render(t, shipped(t, "job")))
	if diff := cmp.Diff(want, render(t, of("outage").write(t))); diff != "" {
		t.Errorf("objects (-cronjob and job +component):\n%s", diff)
	}
}

// Nothing has the account of the outage Jobs, which may release, but these: no folder that is installed
// as it is, no example and no default of the chart.
func TestNothingElseHasTheOutageAccount(t *testing.T) {
	for name, text := range map[string]string{
		"cronjob":   build(t, shipped(t, "cronjob")),
		"the chart": theRelease.manifests(t, ""),
	} {
		for key, object := range decode(t, text) {
			policy := strings.HasPrefix(key, "ValidatingAdmissionPolicy")
			if rendered, err := object.MarshalJSON(); err != nil || !policy && strings.Contains(string(rendered), "outage") {
				t.Errorf("%s has %s, which names it: %v", name, key, err)
			}
		}
	}
	examples, err := filepath.Glob(filepath.Join(deploy, "examples", "*", "*.yaml"))
	must(t, err)
	for _, example := range examples {
		if text, err := os.ReadFile(example); err != nil || strings.Contains(string(text), "outage") {
			t.Errorf("%s names it: %v", example, err)
		}
	}
}

// A component reaches the CronJob and the outage jobs alike.
func TestComponentsReachEveryPod(t *testing.T) {
	components := []string{"outage", "network-policy", "calico-etcd", "metrics", "ca-bundle", "openshift", "priority-class"}
	all := render(t, of(components...).write(t))
	policy := every[*networkingv1.NetworkPolicy](t, all)[home]
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	must(t, err)
	class := every[*schedulingv1.PriorityClass](t, all)["ip-reaper"]
	if class == nil || class.GlobalDefault || class.Value < 1 || class.Value > 1_000_000_000 {
		t.Errorf("the priority class is %v, want one that a user may create, for no other pod", class)
	}
	cronJobs := every[*batchv1.CronJob](t, all)
	if len(cronJobs) != 5 {
		t.Errorf("%d CronJobs, want 5", len(cronJobs))
	}
	for name, c := range cronJobs {
		spec := podSpec(c)
		// A run that gets SIGTERM has more time than Kubernetes' default to end its write and to say what
		// it did.
		if end := spec.TerminationGracePeriodSeconds; end == nil || *end != 60 {
			t.Errorf("%s: a pod does not have 60 s to end", name)
		}
		// A Service of the name ip-reaper must not set variables IP_REAPER_…, which the program
		// would read.
		if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
			t.Errorf("%s: enableServiceLinks is not false", name)
		}
		var names []string
		for _, e := range spec.Containers[0].Env {
			names = append(names, e.Name)
		}
		if !selector.Matches(labels.Set(c.Spec.JobTemplate.Spec.Template.Labels)) ||
			!slices.Contains(names, "ETCD_ENDPOINTS") || !slices.Contains(names, "IP_REAPER_PUSH_URL") || !slices.Contains(names, "SSL_CERT_FILE") ||
			spec.SecurityContext.RunAsUser != nil || class == nil || spec.PriorityClassName != class.Name {
			t.Errorf("a component does not reach the pod of %s: variables %v, class %q", name, names, spec.PriorityClassName)
		}
	}
	for key := range all {
		if strings.HasPrefix(key, "ClusterRole") && strings.Contains(key, "calico") {
			t.Errorf("with etcd, there is %s", key)
		}
	}
	c := fresh(t)
	apply(t, c, of(components...).write(t))
}
