package reservedips

import (
	"context"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugin describes the backend. It is not used if the policy names no resource.
func Plugin() plugin.Plugin {
	return plugin.Plugin{
		Name:     Name,
		Summary:  "Objects of the resources in `backends.reservedIPs` that have `deleteExpired`, after the addresses that they reserve",
		Protects: true,
		Settings: func() any { return new(Settings) },
		Access:   access,
		Open: func(_ context.Context, env plugin.Env, settings any) (ipam.Backend, error) {
			s, ok := settings.(*Settings)
			if !ok {
				return nil, fmt.Errorf("reservedIPs: the settings are %T", settings)
			}
			if len(s.Resources) == 0 {
				return nil, plugin.ErrUnused
			}
			b, err := New(env.Client, s.Resources)
			if err != nil {
				return nil, err
			}
			return b, nil
		},
	}
}

// access has the resources that the policy names. Objects that are never deleted need not be
// restored.
func access(settings any) plugin.Access {
	s, ok := settings.(*Settings)
	if !ok {
		return nil
	}
	a := make(plugin.Access)
	for _, one := range s.Resources {
		group, resource := one.Resource.Group, one.Resource.Resource
		a[plugin.Plan] = append(a[plugin.Plan], plugin.Rule(group, resource, "list"))
		if one.DeleteExpired {
			a[plugin.Release] = append(a[plugin.Release], plugin.Rule(group, resource, "delete"))
			a[plugin.Restore] = append(a[plugin.Restore],
				plugin.Rule(group, resource, "get", "create"), plugin.Rule(group, resource+"/status", "update"))
		}
	}
	return a
}
