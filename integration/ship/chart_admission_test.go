package ship_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// narrowed has Kustomize's policies name the accounts as those of the chart do. Kustomize may
// change names and namespace of an installation, and cannot change these expressions.
func narrowed(t *testing.T, objects map[string]unstructured.Unstructured) {
	t.Helper()
	const user = "'system:serviceaccount:ip-reaper:ip-reaper"
	accounts := map[string]string{
		"accounts-of-ip-reaper": user + "', " + user + "-outage', " + user + "-restore'",
		"accounts-that-release": user + "', " + user + "-outage'",
		"account-that-restores": user + "-restore'",
		"restores":              user + "-restore'",
	}
	for _, object := range objects {
		for _, field := range []string{"matchConditions", "variables"} {
			list, found, err := unstructured.NestedSlice(object.Object, "spec", field)
			must(t, err)
			if !found {
				continue
			}
			for _, one := range list {
				fields := one.(map[string]any)
				users, ok := accounts[fields["name"].(string)]
				if !ok {
					continue
				}
				_, people, ok := strings.Cut(fields["expression"].(string), " || 'ip-reaper-operators'")
				fields["expression"] = "request.userInfo.username in [" + users + "]"
				if ok {
					people = strings.ReplaceAll(people, "request.namespace.contains('ip-reaper')", "request.namespace == 'ip-reaper'")
					fields["expression"] = "request.userInfo.username in [" + users + "] || 'ip-reaper-operators'" + people
				}
			}
			must(t, unstructured.SetNestedSlice(object.Object, list, "spec", field))
		}
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
		files, err := theRelease.renderChart(loadChart(t), values(t, tt.values), tt.version)
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
	if _, ok := theRelease.objects(t, "configMapQuota: 0")[quota]; ok {
		t.Error("there is a quota with the value 0")
	}
	object := theRelease.objects(t, "configMapQuota: 5000000")[quota]
	hard, _, err := unstructured.NestedMap(object.Object, "spec", "hard")
	if diff := cmp.Diff(map[string]any{"count/configmaps": "5000000"}, hard); err != nil || diff != "" {
		t.Errorf("hard limits, %v (-want +got):\n%s", err, diff)
	}
}

// An API server accepts the policies, and goes by them for the accounts of the release and for
// operators in its namespace, whatever it is called: even with all rights, they may not create other
// objects. An account with another name may, even if that begins as the name of the release, or has
// the dot of that name elsewhere.
func TestAPIServerRestrainsTheAccountsOfTheRelease(t *testing.T) {
	c := fresh(t)
	to := target{"a.b", c.Namespace(t)}
	applyManifests(t, c, to.manifests(t, everything+"admissionPolicies: {enabled: true}\n"))
	create := func(namespace, user string, groups ...string) error {
		config, err := c.User(user, append(groups, "system:masters")...)
		must(t, err)
		kube, err := kubernetes.NewForConfig(config)
		must(t, err)
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
		_, err = kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), other, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	account := "system:serviceaccount:" + to.namespace + ":"
	for _, who := range [][]string{{account + "a.b-ip-reaper"}, {account + "a.b-ip-reaper-outage"}, {"jane", "ip-reaper-operators"}} {
		cluster.AwaitT(t, "a policy of the release denies a ConfigMap of "+who[0], func() bool {
			err := create(to.namespace, who[0], who[1:]...)
			return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'a.b-ip-reaper-")
		})
	}
	for _, who := range [][]string{{account + "aXb-ip-reaper"}, {account + "ip-reaper"}, {account + "a.b-ip-reaper-deployer"}} {
		if err := create(to.namespace, who[0]); err != nil {
			t.Errorf("%s creates a ConfigMap: %v, want that no policy is for it", who[0], err)
		}
	}
	if err := create("default", "jane", "ip-reaper-operators"); err != nil {
		t.Errorf("an operator creates a ConfigMap elsewhere: %v, want that no policy is for it", err)
	}
}
