// Package rights gives a service account the rights that an installation of
// ip-reaper has: the roles of deploy/kustomize, whole or with one verb taken away,
// so that tests can say which of them it needs.
package rights

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Grant is the rights of an installation. It is a value: what makes another
// one of it leaves it as it is.
type Grant struct {
	account  string // the name of the service account
	cluster  []*rbacv1.ClusterRole
	local    []*rbacv1.Role
	bindings []runtime.Object
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
