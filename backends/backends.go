// Package backends is the list of the stores that this program knows.
package backends

import (
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/whereabouts"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Names returns the names of all backends, as policies use them.
func Names() []string { return []string{whereabouts.PoolsName, whereabouts.OverlappingName} }

// Clients are the clients that backends work with.
type Clients struct {
	Whereabouts rest.Interface // of whereabouts.cni.cncf.io/v1alpha1
}

// All returns every backend, in the order in which they release: a backend
// whose releases rest on another's comes after it.
func All(c Clients) []reaper.Backend {
	return []reaper.Backend{
		whereabouts.NewPools(c.Whereabouts),
		whereabouts.NewOverlapping(c.Whereabouts),
	}
}
