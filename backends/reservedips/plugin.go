package reservedips

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugin describes the backend. It is unused where the policy names no resource.
func Plugin() plugin.Plugin {
	return plugin.Plugin{
		Name:     Name,
		Summary:  "Objects of the resources in `backends.reservedIPs` that have `deleteExpired`, after the addresses that they reserve",
		Settings: func() any { return new(Settings) },
		Access:   access,
		Open: func(_ context.Context, env plugin.Env, settings any) (reaper.Backend, error) {
			s, ok := settings.(*Settings)
			if !ok {
				return nil, fmt.Errorf("reservedIPs: the settings are %T", settings)
			}
			if len(s.Resources) == 0 {
				return nil, plugin.ErrUnused
			}
			b, err := New(env.Config, s.Resources)
			if err != nil {
				return nil, fmt.Errorf("client: %w", err)
			}
			return b, nil
		},
	}
}

// access has the resources that the policy names. Those whose objects are never
// deleted need not be put back either.
func access(settings any) plugin.Access {
	s, ok := settings.(*Settings)
	if !ok {
		return nil
	}
	a := make(plugin.Access)
	grant := func(right plugin.Right, group, resource string, verbs ...string) {
		a[right] = append(a[right], rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs,
		})
	}
	for _, one := range s.Resources {
		group, resource := one.Resource.Group, one.Resource.Resource
		grant(plugin.Plan, group, resource, "list")
		if one.DeleteExpired {
			grant(plugin.Release, group, resource, "delete")
			grant(plugin.Restore, group, resource, "get", "create")
			grant(plugin.Restore, group, resource+"/status", "update")
		}
	}
	return a
}
