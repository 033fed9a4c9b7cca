package ipam

import (
	"net/netip"
	"slices"
)

// An Endpoint is what a store has beside its allocations for the sandbox of a pod that the plugin set up
// last. The plugin writes it after the allocations. The zero Endpoint says that there is none.
type Endpoint struct {
	Name      string // in the store
	Sandbox   string
	Addresses []netip.Addr

	// InPod is set if the pod stands for its endpoint: the plugin writes sandbox and addresses into
	// its annotations, as its owner may. Then the store has nothing else to say.
	InPod bool

	Err error // why it is not known whether there is one, or what it has
}

// Has reports whether the endpoint is of the sandbox of an allocation, and has its address.
func (e Endpoint) Has(a *Allocation) bool {
	return e.Name != "" && e.Sandbox != "" && e.Sandbox == a.Owner.Sandbox && slices.Contains(e.Addresses, a.IP)
}

// Claims reports whether the endpoint is of the sandbox of an allocation, or has its address, or may
// because it is not known.
func (e Endpoint) Claims(a *Allocation) bool {
	return e.Err != nil || e.Name != "" && (e.Sandbox == a.Owner.Sandbox || slices.Contains(e.Addresses, a.IP))
}
