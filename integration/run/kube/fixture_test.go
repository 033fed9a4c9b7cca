// Package kube_test proves on a real API server what reaper/kube and the backend reservedips do
// without a run: one holder at a time gets the lock, events are written, a journal is read as it
// was written, and reserved IPs are listed, deleted and restored. The numbers in the comments refer
// to the promises in docs/design.md.
package kube_test

import (
	"context"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

func TestMain(m *testing.M) { kit.Main(m, kit.Options{Sets: []kit.Set{kit.ReservedIPs}}) }

// patience is how long a test waits for something.
const patience = 30 * time.Second

// A fixture is the cluster with the test's own namespace.
type fixture struct {
	*testing.T
	*cluster.Cluster
	namespace string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := cluster.StartT(t)
	return &fixture{t, c, c.Namespace(t)}
}

// must ends the test on an error.
func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// client returns a client that, like the program's, uses protobuf.
func (f *fixture) client(config *rest.Config) kubernetes.Interface {
	f.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	f.must(err)
	return client
}

// watched returns such a client with a proxy between it and the API server.
func (f *fixture) watched() (kubernetes.Interface, *proxy.Proxy) {
	f.Helper()
	p, err := proxy.Start(f.Config)
	f.must(err)
	f.Cleanup(p.Stop)
	return f.client(p.Config(f.Config)), p
}

// account creates a service account with only the rights of these rules, in the test's namespace.
// It returns once the API server grants them.
func (f *fixture) account(name string, rules ...rbacv1.PolicyRule) *rest.Config {
	f.Helper()
	config, err := f.ServiceAccount(f.Context(), f.namespace, name)
	f.must(err)
	meta := metav1.ObjectMeta{Name: f.namespace + "-" + name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.namespace, Name: name}}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	rbac := f.Kube.RbacV1()
	_, err = rbac.ClusterRoles().Create(f.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	f.must(err)
	_, err = rbac.RoleBindings(f.namespace).Create(f.Context(),
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
	f.must(err)
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(f.Context()), patience)
		defer cancel()
		f.must(rbac.ClusterRoles().Delete(ctx, meta.Name, metav1.DeleteOptions{}))
	})
	client := f.client(config)
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			f.waitUntilAllowed(client, verb, rule.APIGroups[0], rule.Resources[0])
		}
	}
	return config
}

// waitUntilAllowed returns once the API server grants a right.
func (f *fixture) waitUntilAllowed(client kubernetes.Interface, verb, group, resource string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	resource, subresource, _ := strings.Cut(resource, "/")
	question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: f.namespace,
		},
	}}
	for {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, question, metav1.CreateOptions{})
		f.must(err)
		if answer.Status.Allowed {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// rule returns a rule that allows verbs on a resource.
func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}
