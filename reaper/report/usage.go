package report

import (
	"iter"
	"math/big"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
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

// measure counts what the pools and the networks hold after the run, with the allocations in
// use that have no entry.
func (r *Report) measure(left iter.Seq[*ipam.Allocation]) {
	type id [2]string // backend and pool
	networkOf := make(map[id]int, len(r.Pools))
	for i, n := range r.Networks {
		for _, pool := range n.Pools {
			networkOf[id{n.Backend, pool}] = i
		}
	}
	pools := make(map[id]*filling, len(r.Pools))
	for _, p := range r.Pools {
		pools[id{p.Backend, p.Name}] = new(filling)
	}
	networks := make([]map[netip.Addr]use, len(r.Networks))
	for i := range networks {
		networks[i] = make(map[netip.Addr]use)
	}
	take := func(of id, ip netip.Addr, by use) {
		pool := pools[of]
		if pool == nil || !ip.IsValid() {
			return
		}
		i, ok := networkOf[of]
		pool.add(by, !ok || r.Networks[i].gives(ip))
		if ok { // two pools of the network may have the address
			networks[i][ip] = max(networks[i][ip], by)
		}
	}
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Outcome != Released {
			take(id{e.Backend, e.Pool}, addressOf(e), useOf(e))
		}
	}
	for a := range left {
		take(id{a.Backend, a.Pool}, a.IP, liveUse)
	}
	for i := range r.Pools {
		p := &r.Pools[i]
		of := id{p.Backend, p.Name}
		n, ok := networkOf[of]
		p.Usage = pools[of].usage(p.Capacity, ok && r.Networks[n].Closed != "")
	}
	for i := range r.Networks {
		n := &r.Networks[i]
		var all filling
		for ip, by := range networks[i] {
			all.add(by, n.gives(ip))
		}
		if n.Usage = all.usage(n.Capacity, n.Closed != ""); n.Partial {
			n.Free = nil
		}
	}
}

// addressOf returns the address of an entry. It is not valid if the entry has none.
func addressOf(e *Entry) netip.Addr {
	ip, _ := netip.ParseAddr(e.IP)
	return ip
}

// A use is what has an address. A larger one matters more.
type use int

const (
	leakedUse use = iota + 1
	protectedUse
	otherUse
	liveUse
)

// useOf returns the use of an entry.
func useOf(e *Entry) use {
	switch {
	case e.Verdict == judge.InUse || e.Outcome == Returned:
		return liveUse
	case e.Outcome == Changed:
		return otherUse
	case e.Reason == judge.Protected:
		return protectedUse
	case e.Leaked:
		return leakedUse
	default:
		return otherUse
	}
}

// A filling counts addresses by their use.
type filling struct {
	by     [liveUse + 1]int
	inside int // those that pods can get
}

// add counts one address.
func (f *filling) add(by use, inside bool) {
	f.by[by]++
	if inside {
		f.inside++
	}
}

// usage returns the figures. An address that no pod gets any more, such as one that was
// excluded later, can still be taken; it does not make fewer addresses free.
func (f *filling) usage(capacity *big.Int, closed bool) Usage {
	u := Usage{
		Capacity: capacity,
		Live:     f.by[liveUse], Leaked: f.by[leakedUse], Protected: f.by[protectedUse], Other: f.by[otherUse],
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
