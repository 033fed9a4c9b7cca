// Package backends is the list of the stores that this program knows.
package backends

import (
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/backends/whereabouts"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Names returns the names of all backends, as policies use them.
func Names() []string {
	return []string{whereabouts.PoolsName, whereabouts.OverlappingName, calico.Name}
}

// Clients are what backends work with.
type Clients struct {
	Whereabouts rest.Interface // of whereabouts.cni.cncf.io/v1alpha1
	Calico      *calico.Backend
}

// All returns every backend, in the order in which they release: a backend
// whose releases rest on another's comes after it.
func All(c Clients) []reaper.Backend {
	return []reaper.Backend{
		whereabouts.NewPools(c.Whereabouts),
		whereabouts.NewOverlapping(c.Whereabouts),
		c.Calico,
	}
}

// Offline returns the backends over what the documents have of their stores, in
// the order of All, and the documents that are of no store. A backend of which
// there is nothing is left out.
func Offline(documents []reaper.Document) (found []reaper.Backend, rest []reaper.Document) {
	ofWhereabouts, rest := whereabouts.Offline(documents)
	ofCalico, rest := calico.Offline(rest)
	return append(ofWhereabouts, ofCalico...), rest
}
