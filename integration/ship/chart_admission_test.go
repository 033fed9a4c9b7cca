package ship_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

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
		_, got := decode(t, files["admission.yaml"])["ValidatingAdmissionPolicyBinding /ip-reaper-writes"]
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
	account := "system:serviceaccount:" + to.namespace + ":"
	for _, who := range [][]string{{account + "a.b-ip-reaper"}, {"system:serviceaccount:a-b-ip-reaper-outage:a.b-ip-reaper-outage"}, {"jane", "ip-reaper-operators"}} {
		cluster.AwaitT(t, "a policy of the release denies a ConfigMap of "+who[0], func() bool {
			err := createsOther(t, c, to.namespace, who[0], who[1:]...)
			return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'a.b-ip-reaper-")
		})
	}
	for _, who := range [][]string{{account + "aXb-ip-reaper"}, {account + "ip-reaper"}, {account + "a.b-ip-reaper-deployer"}} {
		if err := createsOther(t, c, to.namespace, who[0]); err != nil {
			t.Errorf("%s creates a ConfigMap: %v, want that no policy is for it", who[0], err)
		}
	}
	if err := createsOther(t, c, "default", "jane", "ip-reaper-operators"); err != nil {
		t.Errorf("an operator creates a ConfigMap elsewhere: %v, want that no policy is for it", err)
	}
}
