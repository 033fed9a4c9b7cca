package ship_test

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ip-reaper/ip-reaper/integration/ship/kustomize"
)

// The folder for GitOps has the objects of the two others, each of them as it is there: no
// binding gives the account of the CronJob the rights of an outage.
func TestAllIsTheCronJobAndTheOutageJobs(t *testing.T) {
	want := render(t, kustomize.Shipped(t, "cronjob"))
	maps.Copy(want, render(t, kustomize.Shipped(t, "job")))
	if diff := cmp.Diff(want, render(t, kustomize.Shipped(t, "all"))); diff != "" {
		t.Errorf("objects (-cronjob and job +all):\n%s", diff)
	}
}

// A component reaches the CronJob and the outage jobs alike.
func TestComponentsReachEveryPodOfAll(t *testing.T) {
	components := []string{"network-policy", "calico-etcd", "metrics", "openshift", "priority-class"}
	all := render(t, kustomize.Overlay{Resources: []string{"all"}, Components: components}.Write(t))
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
			!slices.Contains(names, "ETCD_ENDPOINTS") || !slices.Contains(names, "IP_REAPER_PUSH_URL") ||
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
	apply(t, c, kustomize.Overlay{Resources: []string{"all"}, Components: components}.Write(t))
}

// Pruning deletes what a folder has no more, and nothing that runs have written: neither
// ledger, journals and lock, nor Jobs.
func TestPruningLeavesWhatRunsWrote(t *testing.T) {
	c := fresh(t)
	const set = "--applyset=configmap/gitops"
	prune := func(folder string) string {
		cmd := exec.CommandContext(t.Context(), program(t, "kubectl"), "--kubeconfig="+c.Kubeconfig,
			"apply", "--namespace="+home, "--prune", set, "-k", folder)
		cmd.Env = append(os.Environ(), "KUBECTL_APPLYSET=true")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("prune %s: %v\n%s", folder, err, out)
		}
		return string(out)
	}
	must(t, c.CreateNamespace(t.Context(), home))
	prune(kustomize.Shipped(t, "all"))
	written := writeLedger(t, c, leaked)
	kustomize.Kubectl(t, "--kubeconfig="+c.Kubeconfig, "-n", home, "create", "job", "look", "--from=cronjob/ip-reaper-outage-plan")
	kustomize.Kubectl(t, "--kubeconfig="+c.Kubeconfig, "-n", home, "create", "configmap", "ip-reaper-journal-1")

	var pruned []string
	for line := range strings.Lines(prune(kustomize.Shipped(t, "cronjob"))) {
		if object, ok := strings.CutSuffix(strings.TrimSpace(line), " pruned"); ok {
			pruned = append(pruned, object)
		}
	}
	if len(pruned) != 15 { // account, 4 CronJobs, and a role and its binding for each of 5
		t.Errorf("%d objects are pruned, want 15: %q", len(pruned), pruned)
	}
	for _, object := range pruned {
		if !strings.Contains(object, "-outage") {
			t.Errorf("%s is pruned, which is not the outage's", object)
		}
	}
	if diff := cmp.Diff(written, ledger(t, c)); diff != "" {
		t.Errorf("the ledger (-written +got):\n%s", diff)
	}
	kustomize.Kubectl(t, "--kubeconfig="+c.Kubeconfig, "-n", home, "get", "job/look", "configmap/ip-reaper-journal-1", "cronjob/ip-reaper")
}
