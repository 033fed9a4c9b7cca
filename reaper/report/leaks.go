package report

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A Leak counts addresses of one status and reason.
type Leak struct {
	Status   Fate           `json:"status"` // due, waiting, held or undecided
	Reason   judge.Reason   `json:"reason"`
	Count    int            `json:"count"`
	NextDue  *time.Time     `json:"nextDue,omitempty"` // the end of the first grace period, if they wait
	Remedies []judge.Remedy `json:"remedies"`          // for all of them
}

// maxRemedies limits the commands of one Leak: each node has its own.
const maxRemedies = 3

// leaksIn is leaks for the addresses of a network, or of a part of it.
func (r Report) leaksIn(n NetworkReport, command []string) []Leak {
	pools := n.refs()
	return r.leaks(func(e *Entry) bool {
		if !pools[e.pool()] {
			return false
		}
		if !n.isPart() {
			return true
		}
		ip, err := netip.ParseAddr(e.IP)
		return err == nil && n.Usable.Contains(ip)
	}, command, "--pool", n.Name)
}

// leaks counts the addresses that leaked, or may have, and says what would free them. only is the
// flag that narrows a run to them.
func (r Report) leaks(in func(*Entry) bool, command []string, only ...string) []Leak {
	type kind struct {
		fate   Fate
		reason judge.Reason
	}
	found := make(map[kind][]*Entry) // one for each address: the one that decides on it
	for a, entries := range Addresses(r.withAddresses(in)) {
		status := a.Fate.Status()
		decides := slices.IndexFunc(entries, func(e *Entry) bool { return e.Fate() == a.Fate && e.Reason == a.Reason })
		if decides >= 0 && status != Released && status != InUse && status != Unknown {
			k := kind{status, a.Reason}
			found[k] = append(found[k], entries[decides])
		}
	}
	kinds := slices.SortedFunc(maps.Keys(found), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.fate, b.fate), cmp.Compare(len(found[b]), len(found[a])), cmp.Compare(a.reason, b.reason))
	})
	leaks := make([]Leak, len(kinds))
	for i, k := range kinds {
		entries := found[k]
		slices.SortStableFunc(entries, compareDue)
		leaks[i] = Leak{Status: k.fate, Reason: k.reason, Count: len(entries), Remedies: []judge.Remedy{}}
		if k.fate == Waiting {
			leaks[i].NextDue = entries[0].Due
		}
		wait := slices.MaxFunc(entries, func(a, b *Entry) int { return cmp.Compare(a.Wait, b.Wait) }).Wait
		for n, e := range entries {
			s := r.subject(*e, command)
			s.Wait = wait
			leaks[i].advise(s, n == 0, only)
		}
	}
	return leaks
}

// withAddresses returns the entries of each address of which one entry is in what is asked about: they may be few of
// very many.
func (r Report) withAddresses(in func(*Entry) bool) (few []Entry) {
	wanted := make(map[*Address]bool)
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Address != nil && in(e) {
			wanted[e.Address] = true
		}
	}
	for i := range r.Entries {
		if wanted[r.Entries[i].Address] {
			few = append(few, r.Entries[i])
		}
	}
	return few
}

// compareDue orders two entries by the ends of their grace periods, those without one last.
func compareDue(a, b *Entry) int {
	never := time.Unix(1<<40, 0)
	return ptr.Deref(a.Due, never).Compare(ptr.Deref(b.Due, never))
}

// advise adds what would free an address: for the first, all that its entry advises, and for
// others the commands that are new.
func (l *Leak) advise(s judge.Subject, first bool, only []string) {
	if !first && len(l.Remedies) > maxRemedies {
		return
	}
	s.Owner, s.Only = ipam.EntryOwner{Node: s.Owner.Node, Sandbox: s.Owner.Sandbox}, append([]string{}, only...)
	for _, remedy := range s.Remedies() {
		same := func(have judge.Remedy) bool { return have.Command == remedy.Command }
		if first || remedy.Command != "" && !slices.ContainsFunc(l.Remedies, same) {
			l.Remedies = append(l.Remedies, remedy)
		}
	}
}
