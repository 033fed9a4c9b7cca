package report

import (
	"cmp"
	"math/big"
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// An Asking is a pod, and the networks that it requests.
type Asking struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`

	// Waits is set if the pod waits for an address; otherwise Why says why it does not.
	Waits bool   `json:"waits"`
	Why   string `json:"why,omitempty"`

	// Attachments are the network attachments that it requests, as namespace/name. Unknown are
	// those whose network is not known here.
	Attachments []string `json:"attachments,omitempty"`
	Unknown     []string `json:"unknown,omitempty"`

	// Default is set if it also waits for an address of the cluster's default network: from any
	// of these IPPools, by name or CIDR, or from any at all if none is named.
	Default bool     `json:"default"`
	IPPools []string `json:"ipPools,omitempty"`
}

// A Place is a network or a pool: how full it is, and why addresses of it leaked.
type Place struct {
	Backend string `json:"backend"`
	Name    string `json:"name"`
	Network bool   `json:"network"` // otherwise it is a pool
	Range   string `json:"range"`
	Usage
	Closed string `json:"closed,omitempty"` // see NetworkReport

	// Leaks count the leaked addresses by what becomes of them and why: due, waiting, held.
	Leaks []Leak `json:"leaks"`
}

// A Leak counts leaked addresses of one status and reason.
type Leak struct {
	Status   string         `json:"status"` // due, waiting or held
	Reason   judge.Reason   `json:"reason"`
	Count    int            `json:"count"`
	NextDue  *time.Time     `json:"nextDue,omitempty"` // the end of the first grace period, if they wait
	Remedies []judge.Remedy `json:"remedies"`          // for all of them
}

// maxRemedies limits the commands of one Leak: each node has its own.
const maxRemedies = 3

// locate fills in what the explanation says about networks and pools.
func (x *Explanation) locate(r Report, asking []Asking, command []string) {
	q := x.Question
	switch {
	case q.Pool != "":
		x.Places = r.placesNamed(q.Pool, command)
	case q.Address != "" && len(x.Found) == 0:
		x.nowhere(r, command)
	case q.Pod != "":
		for _, a := range asking {
			x.wait(r, a, command)
		}
	}
}

// wait adds a pod that exists, and the networks from which it waits for an address: those that it
// requests and in which no store has an address for it.
func (x *Explanation) wait(r Report, a Asking, command []string) {
	has := make(map[ipam.PoolRef]bool)
	for _, e := range x.Found {
		if e.Owner.Namespace == a.Namespace && e.Owner.Pod == a.Pod && e.Verdict != judge.Orphaned {
			has[e.pool()] = true
		}
	}
	served := func(n NetworkReport) bool {
		return slices.ContainsFunc(n.Pools, func(pool string) bool { return has[ipam.PoolRef{Backend: n.Backend, Name: pool}] })
	}
	byDefault := a.Default && !slices.ContainsFunc(r.Networks, func(n NetworkReport) bool { return n.Default && served(n) })
	wanted := func(n NetworkReport) bool {
		if n.Default {
			named := len(a.IPPools) == 0 && n.Closed == "" || slices.Contains(a.IPPools, n.Name) || slices.Contains(a.IPPools, n.Range)
			return byDefault && named
		}
		return !served(n) && slices.ContainsFunc(a.Attachments, func(one string) bool { return slices.Contains(n.Attachments, one) })
	}
	for _, one := range a.Attachments {
		if !slices.ContainsFunc(r.Networks, func(n NetworkReport) bool { return slices.Contains(n.Attachments, one) }) {
			a.Unknown = append(a.Unknown, one)
		}
	}
	if a.Waits {
		x.Places = append(x.Places, r.places(command, wanted)...)
	}
	x.Asking = append(x.Asking, a)
}

// nowhere says where an address that no store has could be.
func (x *Explanation) nowhere(r Report, command []string) {
	ip, err := netip.ParseAddr(x.Question.Address)
	if err != nil || !r.Run.Selection.Everything() {
		return
	}
	contains := func(in string) bool {
		prefix, err := netip.ParsePrefix(in)
		return err == nil && prefix.Contains(ip)
	}
	x.Places = r.places(command, func(n NetworkReport) bool { return contains(n.Range) })
	covered := len(x.Places) > 0
	for _, p := range r.Pools {
		if !covered && contains(p.Range) {
			x.Places = append(x.Places, r.placeOfPool(p, command))
		}
	}
	unlisted := slices.ContainsFunc(r.Backends, func(b BackendReport) bool {
		return b.Status == ipam.StatusFailed || b.Status == ipam.StatusPartial
	})
	if len(x.Places) == 0 {
		x.Nearest = r.nearest(ip)
		return
	}
	free, sized := false, covered
	for _, n := range r.Networks {
		if contains(n.Range) {
			free = free || n.Closed == "" && n.Capacity != nil && n.gives(ip)
			sized = sized && n.Capacity != nil
		}
	}
	if !unlisted && (free || sized) {
		x.Free = &free
	}
}

// nearest returns the two networks, or else pools, whose ranges are nearest to an address.
func (r Report) nearest(ip netip.Addr) []string {
	type far struct {
		name     string
		distance *big.Int
	}
	var all []far
	add := func(backend, name, in string) {
		prefix, err := netip.ParsePrefix(in)
		if err != nil || prefix.Addr().BitLen() != ip.BitLen() {
			return
		}
		span := ipam.SpanOf(prefix)
		end := span.First
		if span.Last.Less(ip) {
			end = span.Last
		}
		d := new(big.Int).Sub(new(big.Int).SetBytes(end.AsSlice()), new(big.Int).SetBytes(ip.AsSlice()))
		all = append(all, far{backend + " " + name + " (" + in + ")", d.Abs(d)})
	}
	for _, n := range r.Networks {
		add(n.Backend, n.Name, n.Range)
	}
	if len(all) == 0 {
		for _, p := range r.Pools {
			add(p.Backend, p.Name, p.Range)
		}
	}
	slices.SortStableFunc(all, func(a, b far) int { return cmp.Or(a.distance.Cmp(b.distance), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, one := range all[:min(len(all), 2)] {
		names = append(names, one.name)
	}
	return names
}
