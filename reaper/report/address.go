package report

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// An Address is what became of an address that some allocation leaked, or may have: the fate of the one that
// keeps it most firmly.
type Address struct {
	Fate   Fate
	Reason judge.Reason // of the allocation that decides

	Planned bool // every allocation is released, or the plan has it
}

// A part is what one allocation says of its address.
type part struct {
	fate    Fate
	reason  judge.Reason
	inUse   bool // by its verdict
	earlier bool // an earlier round released it
}

// tells reports whether the allocation leaked the address, or may have.
func (p part) tells() bool { return p.fate.Leaked() || p.fate == Undecided }

// fold returns what became of an address; the zero Address if no allocation leaked it, or may have. What an
// earlier round freed may be in use again, by another pod, but was freed nevertheless.
func fold(parts []part) Address {
	if !slices.ContainsFunc(parts, part.tells) {
		return Address{}
	}
	listed := slices.ContainsFunc(parts, func(p part) bool { return p.tells() && !p.earlier })
	a := Address{Planned: true}
	for _, p := range parts {
		if p.inUse && !listed {
			continue
		}
		a.Planned = a.Planned && p.fate.planned()
		if p.fate > a.Fate || p.fate == a.Fate && a.Reason == judge.SiblingKept {
			a.Fate, a.Reason = p.fate, p.reason
		}
	}
	return a
}

// Addresses yields the addresses that entries leaked, or may have, each once, and the entries of each.
func Addresses(entries []Entry) iter.Seq2[*Address, []*Entry] {
	var all []*Address
	entriesOf := make(map[*Address][]*Entry)
	for i := range entries {
		a := entries[i].Address
		if a == nil {
			continue
		}
		if entriesOf[a] == nil {
			all = append(all, a)
		}
		entriesOf[a] = append(entriesOf[a], &entries[i])
	}
	return func(yield func(*Address, []*Entry) bool) {
		for _, a := range all {
			if !yield(a, entriesOf[a]) {
				return
			}
		}
	}
}

// LeakedBy counts the leaked addresses by a name: the first one of the allocations of each, or an empty
// one if none has any. HeldBy is unsorted.
func (r Report) LeakedBy(name func(Entry) string) map[string]*Leaked {
	counts := make(map[string]*Leaked)
	for a, entries := range Addresses(r.Entries) {
		if !a.Fate.Leaked() {
			continue
		}
		by := ""
		for _, e := range entries {
			by = cmp.Or(by, name(*e))
		}
		if counts[by] == nil {
			counts[by] = new(Leaked)
		}
		counts[by].Count(a)
	}
	return counts
}

// Freed counts the addresses that the run freed. In a dry run it counts those that the plan would
// free, even if a limit refuses the plan.
func (r Report) Freed() int {
	n := 0
	for a := range Addresses(r.Entries) {
		if a.Fate == Released || a.Planned && r.Run.DryRun {
			n++
		}
	}
	return n
}

// CountFreed returns, for each of some sets of decisions, how many addresses are free once what it contains
// is gone, with those that earlier rounds released: as a report of all verdicts counts what it would free.
func CountFreed(all judge.Verdicts, earlier []Entry, sets ...func(decision int) bool) []int {
	type holding struct {
		address  ipam.Address
		decision int
		part
	}
	var holdings []holding
	mayGo := make(map[netip.Addr]bool)
	hold := func(decision int, a *ipam.Allocation, of part) {
		if mayGo[a.IP] { // of very many, few are
			holdings = append(holdings, holding{a.Address(), decision, of})
		}
	}
	const none = -1
	for _, e := range earlier {
		ip, _ := netip.ParseAddr(e.IP) // not valid if it has none
		mayGo[ip] = true
		hold(none, &ipam.Allocation{Network: e.Network, IP: ip}, part{fate: Released, earlier: true})
	}
	for i := range all.Decisions {
		if d := &all.Decisions[i]; d.Ownerless {
			mayGo[d.Allocation.IP] = true
		}
	}
	for i := range all.Decisions {
		d := &all.Decisions[i]
		kept := Entry{Verdict: d.Verdict, Reason: d.Reason, Leaked: d.Leaks()}
		hold(i, d.Allocation, part{fate: kept.Fate(), inUse: d.Verdict == judge.InUse})
	}
	for _, l := range all.InUse {
		hold(none, l.Allocation, part{fate: InUse, inUse: true})
	}
	counts := make([]int, len(sets))
	var parts []part
	for address := range ipam.Addresses(holdings, func(h holding) ipam.Address { return h.address }) {
		for n, gone := range sets {
			parts = parts[:0]
			for _, h := range address {
				if h.decision != none && gone(h.decision) {
					h.fate = Released
				}
				parts = append(parts, h.part)
			}
			if fold(parts).Fate == Released {
				counts[n]++
			}
		}
	}
	return counts
}
