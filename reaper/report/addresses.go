package report

import (
	"iter"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A Fate is what becomes of an address. The zero value stays.
type Fate int

// The fates, from the one that keeps an address most firmly.
const (
	Stays   Fate = iota // an allocation of it did not leak, or is not known to have
	Held                // every allocation leaked, and one is kept for a reason other than its grace period
	Waiting             // every allocation leaked, and a grace period is not over
	Due                 // the grace periods of all that the stores still have are over
	Freed               // the run released every allocation
)

// An Address is an address that some allocation leaked. Several allocations may hold it: the entry
// of a pool and its overlapping-range reservation, or the entries of two pools. It is free only
// if no store has it, so its fate is that of the allocation that keeps it most firmly.
type Address struct {
	Fate   Fate
	Reason judge.Reason // of the allocation that decides

	Planned bool // every allocation is released, or the plan has it
	Listed  bool // the last listing has an allocation of it that leaked
}

// fateOf returns the fate of an entry alone.
func fateOf(e *Entry) Fate {
	switch {
	case e.Outcome == Released:
		return Freed
	case !e.leaks():
		return Stays
	case e.Verdict == judge.Orphaned:
		return Due
	case e.Verdict == judge.Suspected:
		return Waiting
	default:
		return Held
	}
}

// leaks reports whether the entry leaked, and has no owner since.
func (e *Entry) leaks() bool {
	return e.Leaked && e.Verdict != judge.InUse && e.Outcome != Changed && e.Outcome != Returned
}

// take takes an allocation of the address into account.
func (a *Address) take(e *Entry) {
	fate := fateOf(e)
	a.Planned = a.Planned && (e.Outcome == Released || e.Outcome == Planned || e.Outcome == Refused)
	if fate < a.Fate || fate == a.Fate && (a.Reason == "" || a.Reason == judge.SiblingKept) {
		a.Fate, a.Reason = fate, e.Reason
	}
}

// gather gives each entry that leaked its Address. Allocations in use may have no entry. An address
// is an IP of a network: two networks may both have it. What an earlier round freed may be in use
// again, by another pod, but was freed nevertheless.
func (r *Report) gather(left iter.Seq[*ipam.Allocation]) {
	type place struct {
		network string
		ip      netip.Addr
	}
	found := make(map[place]*Address)
	for i := range r.Entries {
		e := &r.Entries[i]
		e.Address = nil
		if ip := addressOf(e); ip.IsValid() && fateOf(e) != Stays {
			here := place{e.Network, ip}
			if found[here] == nil {
				found[here] = &Address{Fate: Freed, Planned: true}
			}
			e.Address = found[here]
			e.Address.Listed = e.Address.Listed || !e.Earlier
		}
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		if a := found[place{e.Network, addressOf(e)}]; a != nil && (e.Verdict != judge.InUse || a.Listed) {
			a.take(e)
		}
	}
	inUse := Entry{Verdict: judge.InUse}
	for l := range left {
		if a := found[place{l.Network, l.IP}]; a != nil && a.Listed {
			a.take(&inUse)
		}
	}
}

// Addresses returns the addresses of entries that leaked, each once, in the order of the entries.
func Addresses(entries []Entry) []*Address {
	var all []*Address
	seen := make(map[*Address]bool)
	for i := range entries {
		if a := entries[i].Address; a != nil && a.Fate != Stays && !seen[a] {
			seen[a] = true
			all = append(all, a)
		}
	}
	return all
}

// Freed counts the addresses that the run freed. In a dry run it counts those that the plan would
// free, even if a limit refuses the plan.
func (r Report) Freed() int {
	n := 0
	for _, a := range Addresses(r.Entries) {
		if a.Fate == Freed || a.Planned && r.Run.DryRun {
			n++
		}
	}
	return n
}
