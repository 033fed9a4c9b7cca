package rights

import (
	"fmt"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ip-reaper/ip-reaper/integration/kit/admission"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// What may be granted: the rights of a dry run, or those of a run that releases.
const (
	Plan    = "plan"
	Release = "release"
)

// Shipped reads what an installation of a mode grants that has the roles of these
// backends alone.
func Shipped(mode string, backends ...string) (Grant, error) {
	files := []string{component(mode, "core")}
	for _, backend := range backends {
		files = append(files, component(mode, backend))
	}
	return load(admission.Reaper, append(files, filepath.Join("base", "bindings.yaml")))
}

// Restoring is what an installation grants to the account that restores.
func Restoring() (Grant, error) {
	return load(admission.Restore, []string{component("restore", "restore")})
}

// component is a file of a component, relative to deploy/kustomize.
func component(name, file string) string { return filepath.Join("components", name, file+".yaml") }

// load reads the roles of files, and of all bindings those that are for them.
func load(account string, files []string) (Grant, error) {
	g := Grant{account: account}
	var bindings []runtime.Object
	for _, file := range files {
		objects, err := assets.Manifests(file)
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
				bindings = append(bindings, o)
			default:
				return g, fmt.Errorf("read %s: a %T is neither a role nor a binding", file, o)
			}
		}
	}
	for _, b := range bindings {
		if g.has(roleOf(b)) {
			g.bindings = append(g.bindings, b)
		}
	}
	if roles := len(g.cluster) + len(g.local); len(g.bindings) != roles {
		return g, fmt.Errorf("%v: %d roles and %d bindings of them", files, roles, len(g.bindings))
	}
	return g, nil
}

// roleOf is the role that a binding is for.
func roleOf(binding runtime.Object) rbacv1.RoleRef {
	if b, ok := binding.(*rbacv1.ClusterRoleBinding); ok {
		return b.RoleRef
	}
	return binding.(*rbacv1.RoleBinding).RoleRef
}

// has reports whether the role is among those of the grant.
func (g Grant) has(ref rbacv1.RoleRef) bool {
	for _, r := range g.cluster {
		if ref.Kind == "ClusterRole" && ref.Name == r.Name {
			return true
		}
	}
	for _, r := range g.local {
		if ref.Kind == "Role" && ref.Name == r.Name {
			return true
		}
	}
	return false
}
