package ipam

import "net/netip"

// An Attachment is what the node knows, beside its stores, about one interface of a sandbox: an entry
// of libcni's cache, which has the result of an ADD until the DEL.
type Attachment struct {
	Sandbox   string // its ID, as the container runtime has it
	Interface string
	IPs       []netip.Addr
	File      string // the path of the entry

	// Unreadable says why the entry could not be read or decoded; empty if it could. Then the
	// interface may have any address.
	Unreadable string

	// Pools are the pools in one of which each of the addresses has to be. It is empty if they may be from
	// a store that has none of the node's pools.
	Pools []PoolRef
}
