package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	f.each(reap.RestoreAccount, restoring(writes))
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

// Other users, and the administrator, are not concerned.
func TestOthersAreNotConcerned(t *testing.T) {
	f := newFixture(t)
	for _, user := range []string{"admin", "system:serviceaccount:kube-system:whereabouts", "ip-reaper", "system:serviceaccount:ip-reaper:other", "system:node:ip-reaper"} {
		config, err := f.User(user, "system:masters")
		f.must(err)
		kube, err := kubernetes.NewForConfig(config)
		f.must(err)
		_, err = kube.CoreV1().ConfigMaps(reap.Home).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "any"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
}

// The policies hold in every namespace in which the manifests can be installed, and for the names
// that namePrefix and nameSuffix of Kustomize make of those of the accounts. A namespace is no part
// of a name.
func TestAccountsOfAnotherNamespaceOrNameAreConcerned(t *testing.T) {
	f := newFixture(t)
	const add = `[{"op":"add","path":"/spec/allocations/9","value":{"id":"c9","podref":"shop/nine","ifname":"net1"}}]`
	const remove = `[{"op":"remove","path":"/spec/allocations/1"}]`
	for _, namespace := range []string{"network-tools", "ip-reaper-restore"} {
		f.must(f.CreateNamespace(t.Context(), namespace))
		for account, restores := range map[string]bool{
			reap.RunAccount: false, reap.OutageAccount: false, reap.RestoreAccount: true,
			"foo-ip-reaper": false, "foo.ip-reaper-outage": false, "fooip-reaper-restore": true,
			"ip-reaper-bar": false, "ip-reaper-outage-bar": false, "foo-ip-reaper-restore.bar": true,
		} {
			config, err := f.User("system:serviceaccount:"+namespace+":"+account, "system:masters")
			f.must(err)
			f.as[account+" elsewhere"] = dynamicOf(f, config)
			adds, removes := "pools", ""
			if restores {
				adds, removes = "", "restore-pools"
			}
			f.each(account+" elsewhere", []write{
				{"create a namespace", "other", "create", "namespace: ", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"evil"}}`},
				{"hold the lease there", "", "create", "lease: ", lease(namespace, "ip-reaper")},
				{"hold the lease of another installation", "leases", "patch", "lease: ip-reaper/ip-reaper", `[{"op":"add","path":"/spec","value":{"holderIdentity":"a"}}]`},
				{"add an allocation", adds, "patch", "pool: kube-system/pool", add},
				{"remove an allocation", removes, "patch", "pool: kube-system/pool", remove},
			})
		}
	}
}
