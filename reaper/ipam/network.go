package ipam

import (
	"context"
	"net/netip"
)

// A Surveyor is a Backend that knows which addresses its store can give to pods.
type Surveyor interface {
	Backend

	// Survey returns the networks of the pools, which List just yielded, and the
	// networks that have no pool yet. Each pool is in at most one network. With an
	// error, it still returns the networks that it knows. The error is a warning in the
	// report. No verdict rests on a network.
	Survey(ctx context.Context, pools []Pool) ([]Network, error)
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
