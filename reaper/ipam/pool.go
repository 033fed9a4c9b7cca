package ipam

import (
	"math/big"
	"net/netip"
)

// A PoolRef names a pool of any backend.
type PoolRef struct{ Backend, Name string }

// A Pool is one stored object that holds allocations and is written as a whole: a
// Whereabouts IPPool, a Calico block, one overlapping-range reservation.
type Pool struct {
	Name string // unique within the backend, such as kube-system/10.0.0.0-24

	// Range is the prefix that the pool allocates from. It is not valid for an
	// object that allocates nothing. Such a pool is left out of the report's pools.
	Range netip.Prefix

	// Capacity is how many addresses Range can give to pods; nil if unknown. The report
	// has the part of them that the network of the pool gives, if its backend is a
	// Surveyor.
	Capacity *big.Int

	// Node is the node whose new pods get their addresses from the pool first, such as the one
	// to which a Calico block is affine; empty if there is none, or if the store does not say.
	// Pods of other nodes may have addresses of the pool, too.
	Node string

	// Tunnels has the addresses that nodes have for themselves, such as those of their tunnels, and
	// the names of the nodes, as far as the store says. It is nil if nodes take no addresses from
	// pools of the store: then what a node shows is of another network.
	Tunnels map[netip.Addr]string

	// Network names the network of the addresses. Two pools of different networks
	// may hold the same address. It is empty if the store does not name a network.
	Network string

	// Protected names what protects every address of the pool, such as a network
	// attachment that excludes all of its range. It is empty if nothing does.
	Protected string

	Allocations []Allocation
}

// A Network is a part of a store from which pods get addresses: a Calico IPPool, or one
// range of Whereabouts with all of its attachments.
type Network struct {
	Name string // unique within the backend

	// Range is the prefix of the network. It is not valid if the network has none.
	Range netip.Prefix

	// Known is set if Usable is known.
	Known bool

	// Usable are the addresses that the store gives to pods, taken or not, without those
	// that are excluded, reserved, or outside the range that is handed out.
	Usable Spans

	// Closed says why pods get no address of the network now, such as "disabled"; empty
	// if they do.
	Closed string

	// Attachments are the network attachments, as namespace/name, through which pods ask for
	// an address of it. Default is set if pods get one without asking.
	Attachments []string
	Default     bool

	// Pools are the names of its pools.
	Pools []string
}
