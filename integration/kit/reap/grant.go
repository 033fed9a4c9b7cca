package reap

import (
	"fmt"
	"path/filepath"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// What may be granted: the rights of a dry run, or those of a run that releases.
const (
	PlanRights    = "plan"
	ReleaseRights = "release"
)

// A Grant has the rights of an installation: the roles that are shipped, complete or without one verb.
type Grant struct {
	account string // the name of the service account, or of a person
	person  bool   // in these groups
	groups  []string
	objects []runtime.Object // roles and their bindings
}

// ShippedGrant reads what an installation grants in a mode, with the roles of only these backends. The
// account may also read the installed policy, which its pod has as a file: the tests run the program
// outside of a pod.
func ShippedGrant(mode string, backends ...string) (Grant, error) {
	var files []string
	for _, role := range append([]string{"core", "state"}, backends...) {
		files = append(files, filepath.Join("..", "helm", "ip-reaper", "rights", mode, role+".yaml"))
	}
	g, err := load(RunAccount, append(files, filepath.Join("base", "bindings.yaml")))
	for _, object := range g.objects {
		if role, ok := object.(*rbacv1.Role); ok {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{state.PolicyName}, Verbs: []string{"get"},
			})
		}
	}
	return g, err
}

// RestoreGrant reads what an installation grants to the account that restores.
func RestoreGrant() (Grant, error) {
	return load(RestoreAccount, []string{filepath.Join("components", "restore", "restore.yaml")})
}

// PeopleGrant reads what a person may who has one of the roles of people: view or operator. The operator is
// in the group that the admission policies hold.
func PeopleGrant(role string) (Grant, error) {
	g := Grant{account: "jane", person: true}
	if role == "operator" {
		g.groups = []string{Operators}
	}
	objects, err := assets.Manifests(filepath.Join("..", "helm", "ip-reaper", "rights", "people", role+".yaml"))
	if err != nil {
		return g, err
	}
	named := metav1.ObjectMeta{Name: "ip-reaper-" + role, Namespace: Home, Labels: map[string]string{"app.kubernetes.io/name": "ip-reaper"}}
	everywhere, jane := *named.DeepCopy(), []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: g.account}}
	everywhere.Namespace = ""
	g.objects = append(objects,
		&rbacv1.ClusterRoleBinding{ObjectMeta: everywhere, Subjects: jane, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name}},
		&rbacv1.RoleBinding{ObjectMeta: named, Subjects: jane, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name}})
	return g, nil
}

// load reads the roles of files, and the bindings for these roles.
func load(account string, files []string) (Grant, error) {
	g := Grant{account: account}
	roles := map[string]bool{} // by kind and name: whether it has a binding
	var bindings []runtime.Object
	for _, file := range files {
		objects, err := assets.Manifests(file)
		if err != nil {
			return g, fmt.Errorf("read %s: %w", file, err)
		}
		for _, object := range objects {
			switch o := object.(type) {
			case *rbacv1.ClusterRole:
				roles["ClusterRole "+o.Name] = false
				g.objects = append(g.objects, o)
			case *rbacv1.Role:
				roles["Role "+o.Name] = false
				g.objects = append(g.objects, o)
			default:
				bindings = append(bindings, o)
			}
		}
	}
	for _, binding := range bindings {
		var of rbacv1.RoleRef
		switch b := binding.(type) {
		case *rbacv1.ClusterRoleBinding:
			of = b.RoleRef
		case *rbacv1.RoleBinding:
			of = b.RoleRef
		}
		role := of.Kind + " " + of.Name
		if _, is := roles[role]; is {
			roles[role] = true
			g.objects = append(g.objects, binding)
		}
	}
	for role, bound := range roles {
		if !bound {
			return g, fmt.Errorf("%v have no binding of %s", files, role)
		}
	}
	return g, nil
}

// rules returns a role's rules, which may be changed; nil for a binding.
func rules(object runtime.Object) []rbacv1.PolicyRule {
	switch o := object.(type) {
	case *rbacv1.ClusterRole:
		return o.Rules
	case *rbacv1.Role:
		return o.Rules
	}
	return nil
}

// Verbs returns everything that the grant gives, each once, named as by proxy.Request: "list pods".
func (g Grant) Verbs() []string {
	var all []string
	for _, object := range g.objects {
		for _, rule := range rules(object) {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, verb+" "+resource)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
