package hostlocal

import (
	"context"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugin describes the backend.
func Plugin() plugin.Plugin {
	return plugin.Plugin{
		Name:     Name,
		Summary:  "Leases of the IPAM plugin `host-local`, in `/var/lib/cni/networks` of each node",
		Scope:    plugin.Node,
		Settings: func() any { return new(Settings) },
		Open: func(_ context.Context, _ plugin.Env, settings any) (ipam.Backend, error) {
			s, ok := settings.(*Settings)
			if !ok {
				return nil, fmt.Errorf("hostlocal: the settings are %T", settings)
			}
			return New(*s), nil
		},
	}
}
