package deploy_test

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// access returns the permissions that a backend says it needs for some rights. Nil
// settings are those of a policy that has none.
func access(p plugin.Plugin, settings any, rights ...plugin.Right) []string {
	if p.Access == nil {
		return nil
	}
	if settings == nil && p.Settings != nil {
		settings = p.Settings()
	}
	var all []string
	for _, right := range rights {
		all = append(all, permissions(p.Access(settings)[right])...)
	}
	return all
}

// permissions returns rules as "group/resource[/name]: verb", sorted and each once.
func permissions(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		names := []string{""}
		if len(rule.ResourceNames) > 0 {
			names = nil
			for _, name := range rule.ResourceNames {
				names = append(names, "/"+name)
			}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						all = append(all, fmt.Sprintf("%s/%s%s: %s", group, resource, name, verb))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// rightsOf are those of a mode.
var rightsOf = map[string][]plugin.Right{
	"plan":    {plugin.Plan},
	"release": {plugin.Plan, plugin.Release},
	"restore": {plugin.Plan, plugin.Restore},
}

// Promise 5. A plan only reads, also what backends ask for by their settings. "watch" is not
// among the verbs: the program holds no watch.
func TestBackendsPlanWithReadsOnly(t *testing.T) {
	asked := 0
	for _, p := range backends.All() {
		if p.Access == nil {
			continue
		}
		var settings any
		switch {
		case p.Name == reservedips.Name:
			resource := reservedips.ResourceName{Group: "b.example.com", Version: "v1", Resource: "keeps"}
			settings = &reservedips.Settings{Resources: []reservedips.Resource{{Resource: resource}}}
		case p.Settings != nil:
			settings = p.Settings()
		}
		for _, rule := range p.Access(settings)[plugin.Plan] {
			for _, verb := range rule.Verbs {
				asked++
				if verb != "get" && verb != "list" {
					t.Errorf("%s asks for %s of %v to plan", p.Name, verb, rule.Resources)
				}
			}
		}
	}
	if asked == 0 {
		t.Error("no backend asks for anything")
	}
}

// The API server has nothing of a Calico that keeps its data in etcd.
func TestCalicoInEtcdNeedsNothing(t *testing.T) {
	got := access(calico.Plugin(), &calico.Settings{Datastore: calico.DatastoreEtcd}, plugin.Plan, plugin.Release, plugin.Restore)
	if len(got) > 0 {
		t.Errorf("it asks for %v", got)
	}
}
