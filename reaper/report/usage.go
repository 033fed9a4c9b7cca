package report

import (
	"math/big"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Usage says how many addresses of a pool or of a network are taken after the run, and by
// what. Changes by other clients are not in it. Used is the sum of Live, Leaked, Protected
// and Other.
type Usage struct {
	// Capacity is how many addresses the store gives to pods, taken or not: without
	// those that are excluded, reserved, or outside the range that is handed out. It is
	// null if unknown.
	Capacity *big.Int `json:"capacity"`

	Used      int `json:"used"`
	Live      int `json:"live"`      // in use
	Leaked    int `json:"leaked"`    // without an owner, and not protected
	Protected int `json:"protected"` // without an owner, and something outside keeps the address
	Other     int `json:"other"`     // what is not a pod's, or could not be decided

	// Free is how many addresses pods can still get: 0 if the network is closed, and
	// null if that is unknown.
	Free *big.Int `json:"free"`
}

// A NetworkReport says how full one network is: the addresses that pods get from one
// Calico IPPool, or from one range of Whereabouts. Its pools may hold only a part of them.
type NetworkReport struct {
	Backend string `json:"backend"`
	Name    string `json:"name"`
	Range   string `json:"range"`
	Usage

	// Pools are the names of the report's pools that are in the network.
	Pools []string `json:"pools"`

	// Closed says why the network hands out no addresses, such as "disabled"; empty if
	// it does.
	Closed string `json:"closed,omitempty"`

	// Partial is set if a pool of the backend could not be read. The pool may be of the
	// network, so the network may have fewer free addresses: Free is null.
	Partial bool `json:"partial,omitempty"`

	// Attachments and Default say which pods get addresses of it: see ipam.Network.
	Attachments []string `json:"-"`
	Default     bool     `json:"-"`

	// Usable are the addresses that Capacity counts; none if that is unknown.
	Usable ipam.Spans `json:"-"`
}

// gives reports whether pods can get the address. They may if that is unknown.
func (n NetworkReport) gives(ip netip.Addr) bool { return n.Capacity == nil || n.Usable.Contains(ip) }

// A filling counts addresses by their fate.
type filling struct {
	fates  [Freed + 1]int
	inside int // those that pods can get, and that are not free
}

// add counts one address.
func (f *filling) add(fate Fate, inside bool) {
	f.fates[fate]++
	if inside && fate != Freed {
		f.inside++
	}
}

// usage returns the figures. An address that no pod gets any more, such as one that was
// excluded later, can still be taken; it does not make fewer addresses free.
func (f *filling) usage(capacity *big.Int, closed bool) Usage {
	u := Usage{
		Capacity: capacity, Live: f.fates[Live], Leaked: f.fates[Held] + f.fates[Waiting] + f.fates[Due],
		Protected: f.fates[Protected], Other: f.fates[Other],
	}
	u.Used = u.Live + u.Leaked + u.Protected + u.Other
	switch {
	case closed:
		u.Free = new(big.Int)
	case capacity != nil:
		u.Free = new(big.Int).Sub(capacity, big.NewInt(int64(f.inside)))
		if u.Free.Sign() < 0 {
			u.Free.SetInt64(0)
		}
	}
	return u
}
