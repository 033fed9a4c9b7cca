package ship_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

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

// A cluster that has nothing of ip-reaper yet takes CronJob and outage Jobs in one go, and a second
// time changes nothing. What it takes also runs: the binary, with the arguments and the
// policy of each CronJob and a token of its account, has nothing to do and says so.
func TestFreshClusterTakesWhatIsShippedAndItRuns(t *testing.T) {
	c, dir := fresh(t), of("outage").write(t)
	checkEach(t, dir, "created", apply(t, c, dir))
	checkEach(t, dir, "unchanged", apply(t, c, dir))
	// A run refuses a cluster without a single pod.
	if _, err := c.CreatePod(t.Context(), "default", "bystander"); err != nil {
		t.Fatal(err)
	}
	for name, job := range everyPod(t, render(t, dir)) {
		result := runPod(t, c, podSpec(job))
		if result.ExitCode != reap.ExitDone {
			t.Errorf("%s: exit code %d\n%s%s", name, result.ExitCode, result.Stdout, result.Stderr)
		}
	}
}

// The ledger is installed empty. What a run wrote into it stays, however often the
// manifests are applied, and whichever folder or component. An operator who has applied the
// two folders changes to one overlay, and back, without a change of any object.
func TestApplyingAgainKeepsTheLedger(t *testing.T) {
	c := fresh(t)
	for _, folder := range []string{"cronjob", "job"} {
		apply(t, c, shipped(t, folder))
	}
	written := writeLedger(t, c, leaked)
	both := of("outage").write(t)
	for _, folder := range []string{both, shipped(t, "cronjob"), shipped(t, "job")} {
		checkEach(t, folder, "unchanged", apply(t, c, folder))
	}
	apply(t, c, of("release").write(t))
	apply(t, c, both, "--server-side", "--force-conflicts") // as the tools for GitOps do
	if diff := cmp.Diff(written, ledger(t, c)); diff != "" {
		t.Errorf("the ledger (-written +got):\n%s", diff)
	}
}

// One line of an overlay raises the rights and lets the CronJob release, under the operator's
// own policy, and without the line both are gone for real: the roles have the same names.
func TestComponentLineRaisesAndLowersRights(t *testing.T) {
	c := fresh(t)
	const own = header + "gracePeriod: 1h\n"
	for _, components := range [][]string{{"outage"}, {"outage", "release"}, {"outage"}} {
		apply(t, c, overlay{Resources: []string{"cronjob"}, Components: components, Policy: own}.write(t))
		releases := slices.Contains(components, "release")
		for _, r := range []authorizationv1.ResourceAttributes{
			{Verb: "patch", Group: "whereabouts.cni.cncf.io", Resource: "ippools", Namespace: "kube-system"},
			{Verb: "create", Resource: "configmaps", Namespace: home},
		} {
			waitUntilMay(t, c, r, releases)
		}
		waitUntilMay(t, c, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}, true)
		policies, err := c.Kube.CoreV1().ConfigMaps(home).Get(t.Context(), "ip-reaper-policy", metav1.GetOptions{})
		must(t, err)
		if got := policies.Data["policy.yaml"]; got != own {
			t.Errorf("%v: the policy says\n%s", components, got)
		}
		job, err := c.Kube.BatchV1().CronJobs(home).Get(t.Context(), "ip-reaper", metav1.GetOptions{})
		must(t, err)
		if args := podSpec(job).Containers[0].Args; !slices.Contains(args, "--remember") || slices.Contains(args, "--dry-run") == releases {
			t.Errorf("%v: the CronJob runs %v", components, args)
		}
	}
}

// waitUntilMay waits until the account may do that, or may not.
func waitUntilMay(t *testing.T, c *cluster.Cluster, r authorizationv1.ResourceAttributes, want bool) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + home + ":ip-reaper", ResourceAttributes: &r,
	}}
	cluster.AwaitT(t, fmt.Sprintf("may %s %s: %t", r.Verb, r.Resource, want), func() bool {
		answer, err := c.Kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed == want
	})
}

// Of a component that is taken out of an overlay, kubectl apply leaves the objects, as the page says.
// What it advises removes them, and nothing else; a namespace of one's own needs another overlay.
func TestDeletingAComponentTakesItsRightsAway(t *testing.T) {
	for name, resource := range map[string]string{
		"restore": "cronjob", "network-policy": "cronjob", "priority-class": "cronjob", "grafana-dashboard": "cronjob", "node-api-server": "node",
	} {
		c := fresh(t)
		without := overlay{Resources: []string{resource}}.write(t)
		apply(t, c, overlay{Resources: []string{resource}, Components: []string{name}}.write(t))
		apply(t, c, without)
		var want []string
		for object := range render(t, overlay{Resources: []string{resource}, Components: []string{name}}.write(t)) {
			if _, stays := render(t, without)[object]; !stays {
				kind, name, _ := strings.Cut(object, " ")
				want = append(want, strings.ToLower(kind)+"/"+name)
			}
		}
		slices.Sort(want)
		get := append([]string{"--kubeconfig=" + c.Kubeconfig, "-n", home, "get", "--ignore-not-found", "-o", "name"}, want...)
		if got := strings.Fields(kubectl(t, get...)); len(got) != len(want) || len(want) == 0 {
			t.Errorf("%s is taken out: of %q there are %q", name, want, got)
		}
		out := kubectl(t, "--kubeconfig="+c.Kubeconfig, "delete", "--ignore-not-found", "-k", shipped(t, "components/"+name))
		if got := strings.Count(out, "deleted"); got != len(want) {
			t.Errorf("%s: %d objects are deleted, want %d:\n%s", name, got, len(want), out)
		}
		if got := kubectl(t, get...); got != "" {
			t.Errorf("%s is deleted, and there are still %q", name, got)
		}
		checkEach(t, without, "unchanged", apply(t, c, without))
	}
}

// The commands that uninstall the outage Jobs delete these, and nothing that another program calls
// its part for an outage.
func TestUninstallingTheOutageJobsLeavesObjectsOfOthers(t *testing.T) {
	c := fresh(t)
	apply(t, c, of("outage").write(t))
	run := func(args ...string) string {
		return kubectl(t, append([]string{"--kubeconfig=" + c.Kubeconfig}, args...)...)
	}
	run("create", "clusterrole", "pager", "--verb=get", "--resource=pods")
	run("label", "clusterrole", "pager", "app.kubernetes.io/name=pager", "app.kubernetes.io/component=outage")
	ran := 0
	for _, p := range pages(t) {
		for _, command := range p.commands() {
			if words := strings.Fields(command.typed); p.path == "docs/install.md" && strings.HasSuffix(command.typed, "app.kubernetes.io/component=outage") {
				ran++
				run(words[1:]...)
			}
		}
	}
	if ran != 3 {
		t.Errorf("the page has %d such commands, want 3", ran)
	}
	run("get", "clusterrole", "pager")
	left := run("get", "--ignore-not-found", "-n", home, "-o", "name", "-l", "app.kubernetes.io/name=ip-reaper,app.kubernetes.io/component=outage",
		"roles,rolebindings,clusterroles,clusterrolebindings")
	if left != "" {
		t.Errorf("these are left: %s", left)
	}
	if phase := run("get", "namespace", "ip-reaper-outage", "-o", "jsonpath={.status.phase}"); phase != "Terminating" {
		t.Errorf("the namespace of the Jobs is %s", phase)
	}
	checkEach(t, "cronjob", "unchanged", apply(t, c, shipped(t, "cronjob")))
}
