package admission_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// What no other policy looks at is refused, also to an account with all rights.
func TestNothingElseIsWritten(t *testing.T) {
	f := newFixture(t)
	const label = `[{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]`
	writes := []write{
		{"create a pod", "other", "create", "pod: ", pod("evil")},
		{"label a pod", "other", "patch", "pod: kube-system/one", label},
		{"write the status of a pod", "other", "patch", "pod: kube-system/one status", `[{"op":"add","path":"/status/podIP","value":"10.0.0.9"}]`},
		{"delete a pod", "other", "delete", "pod: kube-system/one", ``},
		{"evict a pod", "other", "create", "pod: kube-system/one eviction", ``},
		{"bind a pod", "other", "create", "pod: kube-system/one binding", ``},
		{"request a token", "other", "create", "account: kube-system/admin token", ``},
		{"create a secret", "other", "create", "secret: ", `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"ip-reaper","name":"ip-reaper-journal-1"}}`},
		{"create an account", "other", "create", "account: ", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"namespace":"ip-reaper","name":"evil"}}`},
		{"create a namespace", "other", "create", "namespace: ", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"evil"}}`},
		{"delete a namespace", "other", "delete", "namespace: ip-reaper", ``},
		{"taint a node", "other", "patch", "node: node-1", `[{"op":"add","path":"/spec/taints","value":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]}]`},
		{"delete a node", "other", "delete", "node: node-1", ``},
		{"bind a role", "other", "create", "binding: ", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"evil"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`},
		{"create a deployment", "other", "create", "deployment: ", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"ip-reaper","name":"evil"},
			"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`},
		{"label a definition", "other", "patch", "definition: ippools.whereabouts.cni.cncf.io", label},
		{"delete a definition", "other", "delete", "definition: ippools.whereabouts.cni.cncf.io", ``},
		{"create a webhook", "other", "create", "webhook: ", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"evil"}}`},
		{"create a custom resource", "other", "create", "reserved: ",
			`{"apiVersion":"network.example.com/v1alpha1","kind":"ReservedIP","metadata":{"namespace":"kube-system","name":"new"},"spec":{"pod":"shop/two"}}`},
		{"change a custom resource", "other", "patch", "reserved: kube-system/kept", label},
		{"write the status of a custom resource", "other", "patch", "reserved: kube-system/kept status", `[{"op":"add","path":"/status","value":{"ips":["10.0.0.1"]}}]`},
		{"delete a custom resource", "other", "delete", "reserved: kube-system/kept", ``},
	}
	f.releasing(writes...)
	f.each(reap.RestoreAccount, writes)
}

// A connection is no write of an object, and is refused too.
func TestNoConnectionIsMade(t *testing.T) {
	f := newFixture(t)
	config, err := reap.As(f.Cluster, reap.RunAccount)
	f.must(err)
	kube, err := kubernetes.NewForConfig(config)
	f.must(err)
	for _, sub := range []string{"exec", "attach", "portforward", "proxy"} {
		err := kube.CoreV1().RESTClient().Post().Namespace("kube-system").Resource("pods").Name("one").SubResource(sub).
			Do(t.Context()).Error()
		if by, err := refusedBy(err); by != "other" {
			t.Errorf("%s: refused by %q, want other: %v", sub, by, err)
		}
	}
}

// Nobody else is concerned: neither an administrator, nor an account or a group with nearly such a name.
func TestOthersAreNotConcerned(t *testing.T) {
	f := newFixture(t)
	const account = "system:serviceaccount:ip-reaper:"
	for _, who := range [][]string{
		{"admin"}, {"ip-reaper"}, {"system:node:ip-reaper"}, {"system:serviceaccount:kube-system:whereabouts"},
		{account + "other"}, {account + "foo-ip-reaper"}, {account + "ip-reaper-bar"}, {account + "ip-reaper-restore.bar"}, {account + "ip-reaper-outage"},
		{"system:serviceaccount:network-tools:ip-reaper"}, {"system:serviceaccount:ip-reaper-restore:ip-reaper-restore"},
		{"jane", "ip-reaper-operators-2"}, {"jane", "oidc:ip-reaper-operators"}, {"jane", "IP-Reaper-Operators"},
	} {
		name := strings.Join(who, " in ")
		f.user(name, who[0], who[1:]...)
		f.each(name, []write{
			{"create any ConfigMap", "", "create", "configmap: ", configMap("ip-reaper", "any")},
			{"change the owner of an allocation", "", "patch", "pool: kube-system/pool", `[{"op":"replace","path":"/spec/allocations/1/podref","value":"evil/pod"}]`},
			{"delete a handle", "", "delete", "handle: h1", ``},
			{"create a namespace", "", "create", "namespace: ", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"new"}}`},
		})
	}
}
