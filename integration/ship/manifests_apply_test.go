package ship_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// settleTimeout is how long the API server may take to go by new roles.
const settleTimeout = 30 * time.Second

// apply applies a folder, in one go, and returns what kubectl says of each object.
func apply(t *testing.T, c *cluster.Cluster, folder string, more ...string) []string {
	t.Helper()
	args := []string{"--kubeconfig=" + c.Kubeconfig, "apply", "--validate=strict", "--warnings-as-errors", "-k", folder}
	return strings.Split(strings.TrimSpace(kubectl(t, append(args, more...)...)), "\n")
}

// checkEach fails the test unless kubectl says the same of all objects.
func checkEach(t *testing.T, folder, want string, lines []string) {
	t.Helper()
	for _, line := range lines {
		if !strings.HasSuffix(line, want) {
			t.Errorf("apply %s: %q, want %q", folder, line, want)
		}
	}
}

// A cluster that has nothing of ip-reaper yet takes everything in one go, and a second
// time changes nothing. What it takes also runs: the binary, with the arguments and the
// policy of each CronJob and a token of its account, has nothing to do and says so.
func TestFreshClusterTakesWhatIsShippedAndItRuns(t *testing.T) {
	for _, folder := range []string{"cronjob", "job"} {
		t.Run(folder, func(t *testing.T) {
			c := fresh(t)
			dir := shipped(t, folder)
			checkEach(t, folder, "created", apply(t, c, dir))
			checkEach(t, folder, "unchanged", apply(t, c, dir))
			checkEach(t, folder, "(server dry run)", apply(t, c, dir, "--dry-run=server"))
			// A run refuses a cluster without a single pod.
			if _, err := c.CreatePod(t.Context(), "default", "bystander"); err != nil {
				t.Fatal(err)
			}
			all := render(t, dir)
			for name, job := range every[*batchv1.CronJob](t, all) {
				spec := podSpec(job)
				result := runAs(t, c, spec, every[*corev1.ConfigMap](t, all)[spec.Volumes[0].ConfigMap.Name])
				if result.ExitCode != reap.ExitDone {
					t.Errorf("%s: exit code %d\n%s%s", name, result.ExitCode, result.Stdout, result.Stderr)
				}
			}
		})
	}
}

// runAs runs the binary as the container of a pod would.
func runAs(t *testing.T, c *cluster.Cluster, spec corev1.PodSpec, policies *corev1.ConfigMap) reap.Result {
	t.Helper()
	config, err := c.ServiceAccount(t.Context(), home, spec.ServiceAccountName)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := c.KubeconfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range policies.Data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	container := spec.Containers[0]
	there := strings.NewReplacer("$(NAMESPACE)", home, container.VolumeMounts[0].MountPath, dir)
	args := []string{}
	for _, arg := range container.Args {
		args = append(args, there.Replace(arg))
	}
	r, err := reap.New()
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.Run(t.Context(), append(args, "--kubeconfig="+kubeconfig, "--context="+cluster.ContextName, "--output=json")...)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// To apply the other component raises the rights, and lowers them for real: the roles
// have the same names, and the policy changes with them.
func TestOtherComponentRaisesAndLowersRightsAndPolicy(t *testing.T) {
	c := fresh(t)
	for _, mode := range []string{"plan", "release", "plan"} {
		apply(t, c, of(mode).write(t))
		releases := mode == "release"
		for _, r := range []authorizationv1.ResourceAttributes{
			{Verb: "patch", Group: "whereabouts.cni.cncf.io", Resource: "ippools", Namespace: "kube-system"},
			{Verb: "delete", Group: "whereabouts.cni.cncf.io", Resource: "overlappingrangeipreservations", Namespace: "kube-system"},
			{Verb: "update", Group: "crd.projectcalico.org", Resource: "ipamblocks"},
			{Verb: "create", Group: "events.k8s.io", Resource: "events", Namespace: "default"},
			{Verb: "create", Resource: "configmaps", Namespace: home},
		} {
			waitUntilMay(t, c, r, releases)
		}
		waitUntilMay(t, c, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}, true)
		policies, err := c.Kube.CoreV1().ConfigMaps(home).Get(t.Context(), "ip-reaper-policy", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(policies.Data["policy.yaml"], "dryRun: false"); got != releases {
			t.Errorf("%s: the policy says\n%s", mode, policies.Data["policy.yaml"])
		}
	}
}

// waitUntilMay waits until the account may do that, or may not.
func waitUntilMay(t *testing.T, c *cluster.Cluster, r authorizationv1.ResourceAttributes, want bool) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + home + ":ip-reaper", ResourceAttributes: &r,
	}}
	for deadline := time.Now().Add(settleTimeout); ; {
		answer, err := c.Kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status.Allowed == want {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("may %s %s: %v, want %v", r.Verb, r.Resource, answer.Status.Allowed, want)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
