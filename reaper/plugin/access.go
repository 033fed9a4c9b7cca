package plugin

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Needs returns the rules of the opened backends for one right, by backend, with the
// settings of a policy. A rule that has several API groups needs one of them.
func Needs(plugins []Plugin, opened []ipam.Backend, p policy.Policy, right Right) map[string][]rbacv1.PolicyRule {
	settings := settingsOf(plugins, p)
	needs := make(map[string][]rbacv1.PolicyRule)
	for _, b := range opened {
		if located, ok := b.(ipam.Locator); ok && located.Locate().Outside {
			continue
		}
		for _, one := range plugins {
			if one.Name == b.Name() && one.Access != nil {
				needs[one.Name] = one.Access(settings(one.Name))[right]
			}
		}
	}
	return needs
}
