// Package rights gives a service account the rights that an installation of
// ip-reaper has: the roles of deploy/rbac, whole or with one verb taken away, so
// that tests can say which of them it needs.
package rights

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ip-reaper/ip-reaper/integration/assets"
)

// A Grant is the rights of an installation. It is a value: what makes another
// one of it leaves it as it is.
type Grant struct {
	cluster  []*rbacv1.ClusterRole
	local    []*rbacv1.Role
	bindings []runtime.Object
}

// Shipped reads the roles and the bindings of files of deploy/rbac, which are
// named without their extension.
func Shipped(files ...string) (Grant, error) {
	var g Grant
	root, err := assets.Root()
	if err != nil {
		return g, err
	}
	for _, file := range files {
		objects, err := manifests(filepath.Join(root, "..", "deploy", "rbac", file+".yaml"))
		if err != nil {
			return g, fmt.Errorf("read %s: %w", file, err)
		}
		for _, object := range objects {
			switch o := object.(type) {
			case *rbacv1.ClusterRole:
				g.cluster = append(g.cluster, o)
			case *rbacv1.Role:
				g.local = append(g.local, o)
			case *rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding:
				g.bindings = append(g.bindings, o)
			default:
				return g, fmt.Errorf("read %s: a %T is neither a role nor a binding", file, o)
			}
		}
	}
	if roles := len(g.cluster) + len(g.local); roles == 0 || len(g.bindings) != roles {
		return g, fmt.Errorf("%v: %d roles and %d bindings", files, roles, len(g.bindings))
	}
	return g, nil
}

// manifests decodes the objects of a file.
func manifests(file string) ([]runtime.Object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []runtime.Object
	for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var doc runtime.RawExtension
		if err := docs.Decode(&doc); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc.Raw, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// A Verb is one verb of one rule of one of a grant's roles.
type Verb struct {
	local bool
	role  int
	rule  int
	name  string
}

// Of names the verb and its resource as roles do.
func (v Verb) Of(g Grant) string {
	return v.name + " " + v.in(g).Resources[0]
}

// Role is the name of the role that the verb is in.
func (v Verb) Role(g Grant) string {
	if v.local {
		return g.local[v.role].Name
	}
	return g.cluster[v.role].Name
}

// in is the rule that the verb is in.
func (v Verb) in(g Grant) *rbacv1.PolicyRule {
	if v.local {
		return &g.local[v.role].Rules[v.rule]
	}
	return &g.cluster[v.role].Rules[v.rule]
}

// Verbs are all that the grant gives.
func (g Grant) Verbs() []Verb {
	var all []Verb
	add := func(local bool, role int, rules []rbacv1.PolicyRule) {
		for i, r := range rules {
			for _, name := range r.Verbs {
				all = append(all, Verb{local, role, i, name})
			}
		}
	}
	for i, r := range g.cluster {
		add(false, i, r.Rules)
	}
	for i, r := range g.local {
		add(true, i, r.Rules)
	}
	return all
}

// Split gives every resource a rule of its own, so that each can lose a verb.
func (g Grant) Split() Grant {
	g = g.copy()
	for _, r := range g.cluster {
		r.Rules = split(r.Rules)
	}
	for _, r := range g.local {
		r.Rules = split(r.Rules)
	}
	return g
}

func split(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, r := range rules {
		for _, resource := range r.Resources {
			one := *r.DeepCopy()
			one.Resources = []string{resource}
			all = append(all, one)
		}
	}
	return all
}

// Without takes a verb away.
func (g Grant) Without(v Verb) Grant {
	g = g.copy()
	rule := v.in(g)
	rule.Verbs = slices.DeleteFunc(rule.Verbs, func(name string) bool { return name == v.name })
	if len(rule.Verbs) == 0 {
		rule.Verbs = []string{"none"} // a rule must have one
	}
	return g
}

func (g Grant) copy() Grant {
	g.cluster, g.local = slices.Clone(g.cluster), slices.Clone(g.local)
	for i := range g.cluster {
		g.cluster[i] = g.cluster[i].DeepCopy()
	}
	for i := range g.local {
		g.local[i] = g.local[i].DeepCopy()
	}
	return g
}
