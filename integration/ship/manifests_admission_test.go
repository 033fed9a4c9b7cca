package ship_test

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// One kubectl apply -k, and one helm install, make the policies before the bindings of the accounts: an
// account has no right before its limits. kubectl reads the order in the folder that it applies, so each
// overlay of the pages has it.
func TestPoliciesComeBeforeTheRightsThatTheyLimit(t *testing.T) {
	check := func(name string, lines []string) {
		var limits, rights []int
		for i, line := range lines {
			switch kind, _, _ := strings.Cut(line, "."); {
			case strings.HasPrefix(kind, "validatingadmissionpolic"):
				limits = append(limits, i)
			case strings.HasSuffix(kind, "rolebinding"):
				rights = append(rights, i)
			}
		}
		if len(limits) != 4 || len(rights) == 0 || slices.Max(limits) > slices.Min(rights) {
			t.Errorf("%s: the policies and their bindings are made at %v, and the rights at %v", name, limits, rights)
		}
	}
	for _, folder := range []string{shipped(t, "cronjob"), shipped(t, "job"), of("outage", "release", "restore").write(t)} {
		check(folder, apply(t, fresh(t), folder))
	}
	c := fresh(t)
	to := target{chartName, c.Namespace(t)}
	out, err := c.Kubectl(t.Context(), to.manifests(t, everything), "create", "--validate=strict", "-f", "-")
	must(t, err)
	check("the chart", strings.Split(out, "\n"))
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if strings.Contains(b.text(), "../deploy/kustomize/cronjob") && !strings.Contains(b.text(), "order: fifo") {
				t.Errorf("%s:%d: the overlay does not have the order", p.path, b.line)
			}
		}
	}
}

// oneNamespace takes the namespace of the outage Jobs out of an overlay with a namespace of its own.
var oneNamespace = []string{`{$patch: delete, apiVersion: v1, kind: Namespace, metadata: {name: ip-reaper-outage}}`}

// An overlay may have a namespace of its own. The names in policies and bindings change together: if the
// overlay forgets that, the account has no right that no policy holds. Neither has it if the Jobs for an
// outage are applied as they are.
func TestAccountsOfAnotherNamespaceHaveBothRightsAndLimits(t *testing.T) {
	const elsewhere = "network-tools"
	accounts := []string{reap.RunAccount, reap.OutageAccount, reap.RestoreAccount}
	c := fresh(t)
	o := overlay{Resources: []string{"cronjob"}, Components: []string{"release", "restore", "host-network"}, Namespace: elsewhere, Names: []string{"other-namespace"}}
	apply(t, c, o.write(t))
	apply(t, c, shipped(t, "job"))
	apply(t, c, overlay{Resources: []string{"job"}, Components: []string{"host-network"}, Namespace: elsewhere, Names: o.Names, Patches: oneNamespace}.write(t))
	for _, account := range accounts {
		user := "system:serviceaccount:" + elsewhere + ":" + account
		cluster.AwaitT(t, "the rights of "+user, func() bool { return mayPatchPools(t, c, user) })
		for namespace, want := range map[string]string{elsewhere: "the ConfigMap other", "default": "it must be in the namespace of ip-reaper"} {
			cluster.AwaitT(t, user+" is held in "+namespace, func() bool {
				err := createsOther(t, c, namespace, user)
				return err != nil && strings.Contains(err.Error(), want)
			})
		}
	}
	if err := createsOther(t, c, elsewhere, "jane", reap.Operators); err == nil {
		t.Error("an operator creates a ConfigMap in the namespace of ip-reaper")
	}
	if err := createsOther(t, c, "default", "jane", reap.Operators); err != nil {
		t.Errorf("an operator creates a ConfigMap elsewhere: %v", err)
	}

	c = fresh(t)
	o.Components, o.Names, o.Patches = append(o.Components, "outage"), nil, oneNamespace
	apply(t, c, o.write(t))
	for _, account := range accounts {
		named := "system:serviceaccount:" + reap.HomeOf(account) + ":" + account
		cluster.AwaitT(t, "the bindings of "+named, func() bool { return mayPatchPools(t, c, named) })
		if mayPatchPools(t, c, "system:serviceaccount:"+elsewhere+":"+account) {
			t.Errorf("%s has rights in %s, and no policy is for it", account, elsewhere)
		}
	}
	config, err := c.ServiceAccount(t.Context(), elsewhere, reap.RunAccount)
	must(t, err)
	kubeconfig, err := c.KubeconfigFor(config)
	must(t, err)
	result := runReaper(t, "--kubeconfig="+kubeconfig, "--context="+cluster.ContextName, "--state-namespace="+elsewhere)
	if result.ExitCode != reap.ExitError {
		t.Errorf("a run without rights exits with %d\n%s", result.ExitCode, result.Stderr)
	}
}

// The outage Jobs of such an overlay are in that namespace, too, as the page says.
func TestOutageJobsOfAnotherNamespace(t *testing.T) {
	const elsewhere = "network-tools"
	c := fresh(t)
	folder := overlay{
		Resources: []string{"cronjob"}, Components: []string{"outage", "host-network"},
		Namespace: elsewhere, Names: []string{"other-namespace"},
		Patches: oneNamespace,
	}.write(t)
	apply(t, c, folder)
	for name, job := range everyPod(t, render(t, folder)) {
		if state := argument(podSpec(job).Containers[0].Args, "--state-namespace"); job.Namespace != elsewhere || name != "ip-reaper" && state != elsewhere {
			t.Errorf("%s is in %s, and its state in %s", name, job.Namespace, state)
		}
		if err := create(t, c, elsewhere, podSpec(job)); err != nil {
			t.Errorf("the pod of %s is refused: %v", name, err)
		}
	}
	user := "system:serviceaccount:" + elsewhere + ":" + reap.OutageAccount
	cluster.AwaitT(t, "the rights of "+user, func() bool { return mayPatchPools(t, c, user) })
	cluster.AwaitT(t, user+" is held", func() bool {
		err := createsOther(t, c, elsewhere, user)
		return err != nil && strings.Contains(err.Error(), "the ConfigMap other")
	})
}

// mayPatchPools reports whether the user may take allocations out of a pool.
func mayPatchPools(t *testing.T, c *cluster.Cluster, user string) bool {
	t.Helper()
	answer, err := c.Kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "patch", Group: "whereabouts.cni.cncf.io", Resource: "ippools", Namespace: "kube-system",
		}},
	}, metav1.CreateOptions{})
	must(t, err)
	return answer.Status.Allowed
}

// createsOther creates a ConfigMap that is none of ip-reaper, without effect, as a user with all rights.
func createsOther(t *testing.T, c *cluster.Cluster, namespace, user string, groups ...string) error {
	t.Helper()
	config, err := c.User(user, append(groups, "system:masters")...)
	must(t, err)
	kube, err := kubernetes.NewForConfig(config)
	must(t, err)
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	_, err = kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), other, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
