package reaper

import (
	"math/big"
	"net/netip"
)

// An Object names an object of the Kubernetes API. Namespace is empty for an object
// of the cluster.
type Object struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	UID        string
}

// A Pool is one stored object that holds allocations and is written as a whole: a
// Whereabouts IPPool, a Calico block, one overlapping-range reservation.
type Pool struct {
	Name string // unique within the backend, such as kube-system/10.0.0.0-24

	// Range is what the pool hands addresses out of. It is not valid for an object
	// that hands out none; such a pool is left out of the report's pools.
	Range netip.Prefix

	// Capacity is how many addresses Range can give to pods; nil if unknown.
	Capacity *big.Int

	// Object is the pool in the Kubernetes API. It is zero where the pool is not
	// there, or is gone when its allocations are released.
	Object Object

	// Network names the network that the addresses belong to. Two networks may use
	// the same address at once, and their pools never compete for it. Empty means
	// that the store does not tell.
	Network string

	Allocations []Allocation
}
