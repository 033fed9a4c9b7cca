// Package backends is the list of the backends in this program.
package backends

import (
	"slices"

	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/backends/hostlocal"
	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/backends/whereabouts"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// All returns every backend, in the order in which they release: see plugin.Plugin.
func All() []plugin.Plugin {
	return slices.Concat(
		whereabouts.Plugins(),
		[]plugin.Plugin{
			calico.Plugin(),
			reservedips.Plugin(),
			hostlocal.Plugin(),
		},
	)
}
