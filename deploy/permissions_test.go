package deploy_test

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roles returns the rules of every role among the objects.
func roles(objects map[string]metav1.Object) map[string][]rbacv1.PolicyRule {
	rules := make(map[string][]rbacv1.PolicyRule)
	for key, object := range objects {
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules[key] = role.Rules
		case *rbacv1.Role:
			rules[key] = role.Rules
		}
	}
	return rules
}

// permissions returns rules as "group/resource[/name]: verb", sorted.
func permissions(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if len(rule.ResourceNames) == 0 {
						all = append(all, fmt.Sprintf("%s/%s: %s", group, resource, verb))
					}
					for _, name := range rule.ResourceNames {
						all = append(all, fmt.Sprintf("%s/%s/%s: %s", group, resource, name, verb))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// ledger returns the permissions to read and to write the ledger.
func ledger() []string {
	return []string{"/configmaps/ip-reaper-ledger: get", "/configmaps/ip-reaper-ledger: update"}
}
