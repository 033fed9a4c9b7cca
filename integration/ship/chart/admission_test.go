package chart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// narrowed has Kustomize's policies name the accounts as those of the chart do. Kustomize may
// change names and namespace of an installation, and cannot change these expressions.
func narrowed(t *testing.T, objects map[string]unstructured.Unstructured) {
	t.Helper()
	const user = "'system:serviceaccount:ip-reaper:ip-reaper"
	whole := map[string]string{
		"accounts-of-ip-reaper": user + "', " + user + "-outage', " + user + "-restore'",
		"accounts-that-release": user + "', " + user + "-outage'",
		"account-that-restores": user + "-restore'",
		"restores":              user + "-restore'",
	}
	left := maps.Clone(whole)
	for _, object := range objects {
		for _, field := range []string{"matchConditions", "variables"} {
			list, found, err := unstructured.NestedSlice(object.Object, "spec", field)
			must(t, err)
			for _, one := range list {
				fields := one.(map[string]any)
				if users, ok := whole[fields["name"].(string)]; ok {
					expression := "request.userInfo.username in [" + users + "]"
					if _, people, ok := strings.Cut(fields["expression"].(string), " || 'ip-reaper-operators'"); ok {
						people = strings.ReplaceAll(people, "request.namespace.contains('ip-reaper')", "request.namespace == 'ip-reaper'")
						expression += " || 'ip-reaper-operators'" + people
					}
					fields["expression"] = expression
					delete(left, fields["name"].(string))
				}
			}
			if !found {
				continue
			}
			must(t, unstructured.SetNestedSlice(object.Object, list, "spec", field))
		}
	}
	if len(left) > 0 {
		t.Errorf("Kustomize's policies have no %v any more", slices.Collect(maps.Keys(left)))
	}
}

// An API server before 1.30 knows no admission policies, and would refuse the whole chart. Helm
// does not need to ask one: without a cluster, it knows no kinds of an API.
func TestAdmissionPoliciesAreThereFromKubernetes130On(t *testing.T) {
	for _, tt := range []struct {
		values, version string
		want            bool
	}{
		{"", "v1.29.14", false},
		{"", "v1.30.0", true},
		{"", "v1.30.0-eks-036c24b", true},
		{"", "v1.31.2+k3s1", true},
		{"mode: release", newest, true},
		{"admissionPolicies: {enabled: true}", "v1.29.14", true},
		{"admissionPolicies: {enabled: false}", newest, false},
	} {
		files, err := home.renderChart(loadChart(t), values(t, tt.values), tt.version)
		must(t, err)
		_, got := decode(t, files["admission.yaml"])["ValidatingAdmissionPolicyBinding /ip-reaper-pools"]
		if got != tt.want {
			t.Errorf("values %q, Kubernetes %s: there are policies: %t", tt.values, tt.version, got)
		}
		if told := strings.Contains(files["NOTES.txt"], "There are no admission policies"); told == got {
			t.Errorf("values %q, Kubernetes %s: the notes say that there are none: %t", tt.values, tt.version, told)
		}
	}
}

// In a namespace with other programs, a quota would limit these.
func TestQuotaCanBeChangedAndLeftOut(t *testing.T) {
	const quota = "ResourceQuota ip-reaper/ip-reaper"
	if _, ok := home.objects(t, "configMapQuota: 0")[quota]; ok {
		t.Error("there is a quota with the value 0")
	}
	object := home.objects(t, "configMapQuota: 5000000")[quota]
	hard, _, err := unstructured.NestedMap(object.Object, "spec", "hard")
	if diff := cmp.Diff(map[string]any{"count/configmaps": "5000000"}, hard); err != nil || diff != "" {
		t.Errorf("hard limits, %v (-want +got):\n%s", err, diff)
	}
}

// An API server accepts the policies, and goes by them for the account of the release: it
// may create nothing, even with all rights. An account with another name may, even if that
// begins as the name of the release, or has the dot of that name elsewhere.
func TestAPIServerRestrainsTheAccountOfTheRelease(t *testing.T) {
	c := fresh(t)
	to := target{"a.b", c.Namespace(t)}
	apply(t, c, to.manifests(t, everything+"admissionPolicies: {enabled: true}\n"))
	create := func(account string) error {
		config, err := c.User("system:serviceaccount:"+to.namespace+":"+account, "system:masters")
		must(t, err)
		kube, err := kubernetes.NewForConfig(config)
		must(t, err)
		probe := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
		_, err = kube.CoreV1().Namespaces().Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for _, account := range []string{"a.b-ip-reaper", "a.b-ip-reaper-outage"} {
		var err error
		for deadline := time.Now().Add(settleTimeout); err == nil && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			err = create(account)
		}
		if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'a.b-ip-reaper-") {
			t.Errorf("%s creates a namespace: %v, want that a policy of the release denies it", account, err)
		}
	}
	for _, account := range []string{"aXb-ip-reaper", "ip-reaper", "a.b-ip-reaper-deployer"} {
		if err := create(account); err != nil {
			t.Errorf("%s creates a namespace: %v, want that no policy is for it", account, err)
		}
	}
}

// The role of operators lets them create and delete ConfigMaps, and create leases, in the namespace of the
// release, which RBAC cannot limit by name. The policies do, whatever the namespace is called.
func TestAPIServerRestrainsOperatorsInTheNamespaceOfTheRelease(t *testing.T) {
	c := fresh(t)
	to := target{"a.b", c.Namespace(t)}
	apply(t, c, to.manifests(t, everything+"admissionPolicies: {enabled: true}\n"))
	config, err := c.User("jane", "ip-reaper-operators", "system:masters")
	must(t, err)
	kube, err := kubernetes.NewForConfig(config)
	must(t, err)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stored"}}
	_, err = c.Kube.CoreV1().ConfigMaps(to.namespace).Create(t.Context(), stored, metav1.CreateOptions{})
	must(t, err)
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	for what, write := range map[string]func(namespace string) error{
		"creates another ConfigMap": func(namespace string) error {
			_, err := kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), other, dry)
			return err
		},
		"deletes another ConfigMap": func(namespace string) error {
			return kube.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "stored", metav1.DeleteOptions{DryRun: dry.DryRun})
		},
		"creates another lease": func(namespace string) error {
			_, err := kube.CoordinationV1().Leases(namespace).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: other.ObjectMeta}, dry)
			return err
		},
	} {
		var err error
		denied := func() bool {
			return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'a.b-ip-reaper-")
		}
		for deadline := time.Now().Add(settleTimeout); !denied() && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			err = write(to.namespace)
		}
		if !denied() {
			t.Errorf("an operator %s in the namespace of the release: %v, want that a policy denies it", what, err)
		}
		if err := write("default"); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("an operator %s elsewhere: %v, want that no policy is for it", what, err)
		}
	}
}

// settleTimeout is how long the API server may take to go by new policies.
const settleTimeout = 30 * time.Second
