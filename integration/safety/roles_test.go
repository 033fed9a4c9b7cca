package safety_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ip-reaper/ip-reaper/integration/assets"
)

// home is where the shipped manifests put the reaper, and its account's name.
const home = "ip-reaper"

// A grant is the rights that an installation gives: the roles as shipped, or
// with one verb of one rule taken away.
type grant struct {
	cluster *rbacv1.ClusterRole
	local   *rbacv1.Role
	others  []runtime.Object // bindings
}

// shipped reads a role of deploy/rbac and its bindings.
func shipped(t *testing.T, name string) grant {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	var g grant
	for _, file := range []string{name + ".yaml", name + "-binding.yaml"} {
		for _, object := range manifests(t, filepath.Join(root, "..", "deploy", "rbac", file)) {
			switch o := object.(type) {
			case *rbacv1.ClusterRole:
				g.cluster = o
			case *rbacv1.Role:
				g.local = o
			default:
				g.others = append(g.others, o)
			}
		}
	}
	if g.cluster == nil || g.local == nil || len(g.others) != 2 {
		t.Fatalf("%s: want a cluster role, a role and two bindings", name)
	}
	return g
}

// manifests decodes the objects of a file.
func manifests(t *testing.T, file string) []runtime.Object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var doc runtime.RawExtension
		if err := docs.Decode(&doc); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc.Raw, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

// A verb is one verb of one rule of one of a grant's roles.
type verb struct {
	local bool
	rule  int
	name  string
}

// of names the verb and its resource as roles do.
func (v verb) of(g grant) string {
	r := v.in(g)
	return fmt.Sprintf("%s %s", v.name, r.Resources[0])
}

// in is the rule that the verb is in.
func (v verb) in(g grant) rbacv1.PolicyRule {
	if v.local {
		return g.local.Rules[v.rule]
	}
	return g.cluster.Rules[v.rule]
}

// verbs are all that the grant gives, each resource of a rule by itself.
func (g grant) verbs() []verb {
	var all []verb
	for _, local := range []bool{false, true} {
		rules := g.cluster.Rules
		if local {
			rules = g.local.Rules
		}
		for i, r := range rules {
			for _, name := range r.Verbs {
				all = append(all, verb{local, i, name})
			}
		}
	}
	return all
}

// split gives every resource a rule of its own, so that each can lose a verb.
func (g grant) split() grant {
	g.cluster, g.local = g.cluster.DeepCopy(), g.local.DeepCopy()
	for _, rules := range []*[]rbacv1.PolicyRule{&g.cluster.Rules, &g.local.Rules} {
		var split []rbacv1.PolicyRule
		for _, r := range *rules {
			for _, resource := range r.Resources {
				one := *r.DeepCopy()
				one.Resources = []string{resource}
				split = append(split, one)
			}
		}
		*rules = split
	}
	return g
}

// without takes a verb away.
func (g grant) without(v verb) grant {
	g.cluster, g.local = g.cluster.DeepCopy(), g.local.DeepCopy()
	rules := g.cluster.Rules
	if v.local {
		rules = g.local.Rules
	}
	rules[v.rule].Verbs = slices.DeleteFunc(rules[v.rule].Verbs, func(name string) bool { return name == v.name })
	if len(rules[v.rule].Verbs) == 0 {
		rules[v.rule].Verbs = []string{"none"} // a rule must have one
	}
	return g
}

// An account is the reaper's service account, with the rights of one grant.
type account struct {
	*scene
	kube kubernetes.Interface // as the account itself
}

// install makes the scene's runs those of the service account under a grant.
func (s *scene) install(t *testing.T, g grant) *account {
	t.Helper()
	ctx := t.Context()
	if err := s.CreateNamespace(ctx, home); err != nil {
		t.Fatal(err)
	}
	cfg, err := s.ServiceAccount(ctx, home, home)
	if err != nil {
		t.Fatal(err)
	}
	s.ledgerIn = home
	s.kubeconfig, err = s.KubeconfigFor(s.toReaper.Config(cfg))
	if err != nil {
		t.Fatal(err)
	}
	a := &account{s, kubernetes.NewForConfigOrDie(cfg)}
	rbac := s.Kube.RbacV1()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		none, all := metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=ip-reaper"}
		err := errors.Join(
			rbac.ClusterRoleBindings().DeleteCollection(ctx, none, all), rbac.ClusterRoles().DeleteCollection(ctx, none, all),
			rbac.RoleBindings(home).DeleteCollection(ctx, none, all), rbac.Roles(home).DeleteCollection(ctx, none, all),
		)
		if err != nil {
			t.Error(err)
		}
	})
	for _, object := range append([]runtime.Object{g.cluster, g.local}, g.others...) {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			_, err = rbac.ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.Role:
			_, err = rbac.Roles(home).Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			_, err = rbac.ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			_, err = rbac.RoleBindings(home).Create(ctx, o, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a.waitFor(t, g, nil)
	return a
}

// grant replaces the roles, and waits until the API server goes by them.
func (a *account) grant(t *testing.T, g grant, without *verb) {
	t.Helper()
	now := g
	if without != nil {
		now = g.without(*without)
	}
	_, err := a.Kube.RbacV1().ClusterRoles().Update(t.Context(), now.cluster, metav1.UpdateOptions{})
	_, err2 := a.Kube.RbacV1().Roles(home).Update(t.Context(), now.local, metav1.UpdateOptions{})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	a.waitFor(t, g, without)
}

// waitFor waits until the API server allows the account exactly what the grant
// gives, without one verb.
func (a *account) waitFor(t *testing.T, g grant, without *verb) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for _, v := range g.verbs() {
		want := without == nil || v != *without
		for a.may(t, v, g) != want {
			if time.Now().After(deadline) {
				t.Fatalf("%s: want %t", v.of(g), want)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// may asks the API server whether the account has the right.
func (a *account) may(t *testing.T, v verb, g grant) bool {
	t.Helper()
	r := v.in(g)
	attributes := &authorizationv1.ResourceAttributes{Verb: v.name, Group: r.APIGroups[0], Resource: r.Resources[0]}
	if v.local {
		attributes.Namespace = home
	}
	if len(r.ResourceNames) > 0 {
		attributes.Name = r.ResourceNames[0]
	}
	review, err := a.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}
