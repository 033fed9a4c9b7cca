// Package backends is the list of the backends in this program.
package backends

import (
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/backends/whereabouts"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Names returns the names of all backends, as policies write them.
func Names() []string {
	return []string{whereabouts.PoolsName, whereabouts.OverlappingName, calico.Name}
}

// Clients are the connections that the backends use.
type Clients struct {
	Whereabouts rest.Interface // a client of whereabouts.cni.cncf.io/v1alpha1
	Calico      *calico.Backend
}

// All returns every backend in the order in which they release. If a release of one
// backend depends on those of another, it comes after that one.
func All(c Clients) []reaper.Backend {
	return []reaper.Backend{
		whereabouts.NewPools(c.Whereabouts),
		whereabouts.NewOverlapping(c.Whereabouts),
		c.Calico,
	}
}

// Offline returns the backends over the documents of their stores, in the order of
// All, and the documents of no store. A backend without a document is left out.
func Offline(documents []reaper.Document) (found []reaper.Backend, rest []reaper.Document) {
	ofWhereabouts, rest := whereabouts.Offline(documents)
	ofCalico, rest := calico.Offline(rest)
	return append(ofWhereabouts, ofCalico...), rest
}
