package azurecns

import (
	"context"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugin describes the backend. It is not used unless the policy turns it on.
func Plugin() plugin.Plugin {
	return plugin.Plugin{
		Name:     Name,
		Summary:  "Addresses that Azure CNS has assigned on a node (off, unless `backends.azurecns` has `enabled: true`)",
		Scope:    plugin.Node,
		Settings: func() any { return new(Settings) },
		Open: func(_ context.Context, env plugin.Env, settings any) (ipam.Backend, error) {
			s, ok := settings.(*Settings)
			if !ok {
				return nil, fmt.Errorf("azurecns: the settings are %T", settings)
			}
			if !env.On && !env.Off {
				return nil, plugin.ErrUnused
			}
			b, err := New(s)
			if err != nil && env.Off {
				b, err = New(new(Settings)) // its files may be gone
			}
			if err != nil {
				return nil, ipam.BadInput(err, "")
			}
			return b, nil
		},
	}
}
