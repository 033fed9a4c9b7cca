package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// places returns the wanted networks. The command is that of a run.
func (r Report) places(command []string, wanted func(NetworkReport) bool) []Place {
	var all []Place
	for _, n := range r.Networks {
		if wanted(n) {
			all = append(all, Place{
				Backend: n.Backend, Name: n.Name, Network: true, Range: n.Range, Usage: n.Usage, Closed: n.Closed,
				Leaks: r.leaks(n.refs(), n.Name, command),
			})
		}
	}
	return all
}

// placeOfPool returns a pool as a place.
func (r Report) placeOfPool(p PoolReport, command []string) Place {
	in := map[ipam.PoolRef]bool{p.ref(): true}
	return Place{Backend: p.Backend, Name: p.Name, Range: p.Range, Usage: p.Usage, Leaks: r.leaks(in, p.Name, command)}
}

// placesNamed returns the networks that a name stands for, and such pools outside of these.
func (r Report) placesNamed(name string, command []string) []Place {
	all := r.places(command, func(n NetworkReport) bool { return n.named(name) })
	alone, _ := r.PoolsNamed(name)
	for _, n := range r.Networks {
		if n.named(name) {
			for pool := range n.refs() {
				delete(alone, pool)
			}
		}
	}
	for _, p := range r.Pools {
		if alone[p.ref()] {
			all = append(all, r.placeOfPool(p, command))
		}
	}
	return all
}

// leaks counts the leaked addresses of pools, and says what would free them. The name narrows a run
// to these pools.
func (r Report) leaks(in map[ipam.PoolRef]bool, name string, command []string) []Leak {
	type kind struct {
		fate   Fate
		reason judge.Reason
	}
	found := make(map[kind][]*Entry) // one for each address: the one that decides on it
	all, entriesOf := Addresses(r.Entries)
	for _, a := range all {
		entries := entriesOf[a]
		decides := slices.IndexFunc(entries, func(e *Entry) bool { return fateOf(e) == a.Fate && e.Reason == a.Reason })
		if decides >= 0 && a.Fate != Freed && slices.ContainsFunc(entries, func(e *Entry) bool { return in[e.pool()] }) {
			k := kind{max(a.Fate, Held), a.Reason} // what is protected is held
			found[k] = append(found[k], entries[decides])
		}
	}
	kinds := slices.SortedFunc(maps.Keys(found), func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.fate, a.fate), cmp.Compare(len(found[b]), len(found[a])), cmp.Compare(a.reason, b.reason))
	})
	leaks := make([]Leak, len(kinds))
	for i, k := range kinds {
		entries := found[k]
		slices.SortStableFunc(entries, compareDue)
		leaks[i] = Leak{Status: k.fate.String(), Reason: k.reason, Count: len(entries), Remedies: []judge.Remedy{}}
		if k.fate == Waiting {
			leaks[i].NextDue = entries[0].Due
		}
		for n, e := range entries {
			leaks[i].advise(r, *e, n == 0, name, command)
		}
	}
	return leaks
}

// compareDue orders two entries by the ends of their grace periods, those without one last.
func compareDue(a, b *Entry) int {
	switch {
	case a.Due != nil && b.Due != nil:
		return a.Due.Compare(*b.Due)
	case a.Due != nil:
		return -1
	case b.Due != nil:
		return 1
	}
	return 0
}

// advise adds what would free an address: for the first, all that its entry advises, and for
// others the commands that are new.
func (l *Leak) advise(r Report, e Entry, first bool, name string, command []string) {
	if !first && len(l.Remedies) > maxRemedies {
		return
	}
	e.Owner, e.Pool = ipam.EntryOwner{Node: e.Owner.Node}, name
	for _, remedy := range r.subject(e, command).Remedies() {
		same := func(have judge.Remedy) bool { return have.Command == remedy.Command }
		if first || remedy.Command != "" && !slices.ContainsFunc(l.Remedies, same) {
			l.Remedies = append(l.Remedies, remedy)
		}
	}
}
