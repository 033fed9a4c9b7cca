package judge

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// showsBooked reports whether the status of the pod that the allocation names has its address, so that
// the sandbox is on the node of the pod.
//
// An allocation that is older than the pod is of an earlier one: then the pod has the address from
// another network. The status of a pod on the network of its node has the address of the node.
func showsBooked(a *ipam.Allocation, pod census.Pod) bool {
	if pod.Node == "" || pod.HostNetwork || !pod.Proves(a.IP) {
		return false
	}
	return a.Created.IsZero() || pod.Created.Sub(a.Created) <= maxClockSkew
}

// learn sets the meanings to those of the ledger and those that pods show now. It leaves out those
// that the names of the nodes prove: see census.MayBe.
func (f *Facts) learn(shown map[ledger.Meaning]bool) {
	maps.DeleteFunc(shown, func(m ledger.Meaning, _ bool) bool { return slices.Contains(f.census.MayBe(m.Name), m.Node) })
	f.mean(slices.AppendSeq(slices.Clone(f.ledger.Meanings), maps.Keys(shown)))
}

// mean adds meanings to those that the facts have.
func (f *Facts) mean(more []ledger.Meaning) {
	f.meanings = ledger.ArrangeMeanings(slices.Concat(f.meanings, more))
	f.byName = make(map[string][]ledger.Meaning)
	for _, m := range f.meanings {
		f.byName[m.Name] = append(f.byName[m.Name], m)
	}
}

// meant yields what a store means by the name of a node, besides a node of that name. The empty
// backend stands for all stores.
func (f *Facts) meant(backend, name string) iter.Seq[ledger.Meaning] {
	return func(yield func(ledger.Meaning) bool) {
		if name == "" {
			return
		}
		for _, key := range []string{name, ""} {
			for _, m := range f.byName[key] {
				if (backend == "" || backend == m.Backend) && !yield(m) {
					return
				}
			}
		}
	}
}

// meant yields what the name of the node of the allocation may mean, besides a node of that name. If the
// name is not from its own store, it may be from any.
func (c *Case) meant() iter.Seq[ledger.Meaning] {
	if c.nodeLearned {
		return c.Facts.meant("", c.Owner.Node)
	}
	return c.Facts.meant(c.Backend, c.Owner.Node)
}

// misleads reports whether the name of the node of the allocation may mean another node: then it proves
// neither where the sandbox is not, nor whose clock its time is by.
func (c *Case) misleads() bool {
	for range c.meant() {
		return true
	}
	return false
}

// nodesMeant yields the names of the nodes of a meaning. If it may be any, these are the
// unreachable ones, and the empty name, which stands for any that is ready.
func (f *Facts) nodesMeant(m ledger.Meaning) iter.Seq[string] {
	return func(yield func(string) bool) {
		if m.Node == "" {
			for _, n := range f.census.Away() {
				if f.census.Unreachable(n.Name) && !yield(n.Name) {
					return
				}
			}
		}
		yield(m.Node)
	}
}

// seesNow reports whether a pod shows the meaning now.
func (f *Facts) seesNow(m ledger.Meaning) bool { return m.Seen == ledger.ToSecond(f.now).Unix() }

// mayMean returns the names of the nodes that a name from any source may mean: that node, those for which
// it may be another name, and those that any store may mean by it.
func (f *Facts) mayMean(name string) []string {
	all := append(f.census.MayBe(name), name)
	for m := range f.meant("", name) {
		all = slices.AppendSeq(all, f.nodesMeant(m))
	}
	return all
}

// whyMeant says why the name of the node of the allocation may mean this one: in a note, and in
// evidence. The note is empty if no pod said so.
func (c *Case) whyMeant(node string) (note string, evidence Evidence) {
	for m := range c.meant() {
		switch m.Node {
		case node:
			note = "a pod on " + node + " had an address that " + m.Backend + " has on node " + c.Owner.Node
			source := fromLedger
			if c.seesNow(m) {
				source = fromPods
			}
			return note, Evidence{source, "at " + Stamp(time.Unix(m.Seen, 0)) + ", " + note}
		case "":
			note = "its store has more other names of nodes than are remembered"
			evidence = Evidence{fromLedger, note}
		}
	}
	return note, evidence
}

// nextMeanings returns the meanings for the next run. It forgets one only if the store was listed whole,
// and
//
//   - no allocation under the name can be on the node: the status of its own pod shows each of them on
//     another node; and
//   - the node is gone, or its plugin uses another name by now: a pod that was made there after a run last
//     saw the meaning has an address under another name. Both times are by the API server's clock, as far
//     as that of a run may differ from it.
//
// That the store has nothing under the name is not enough: the plugin may use the name again. Nor is it ever
// known which nodes are meant if any may be.
func (f *Facts) nextMeanings(inv ipam.Inventory) []ledger.Meaning {
	next := f.meanings
	for _, l := range inv.Listings {
		of := func(m ledger.Meaning) bool { return m.Backend == l.Backend && !f.seesNow(m) }
		if !l.Whole || !f.census.ReadsNodes() || !slices.ContainsFunc(next, of) {
			continue
		}
		hidden, latest, sure := f.usesOf(l)
		if !sure {
			continue
		}
		next = slices.DeleteFunc(slices.Clone(next), func(m ledger.Meaning) bool {
			last := latest[m.Node]
			renamed := last.name != m.Name && last.pod.Sub(time.Unix(m.Seen, 0)) > maxClockSkew
			return of(m) && m.Node != "" && !hidden[m.Name] && (renamed || !f.census.HasNode(m.Node))
		})
	}
	return next
}

// A use is the name under which a store has the address of a pod, and when the pod was created.
type use struct {
	name string
	pod  time.Time
}

// usesOf returns the names of nodes under which a store has anything whose pod does not show it, and how
// the store called each node for the latest pod there. The empty name stands for all names. It is not
// sure if something cannot be read. A pod that is younger than an ADD can take does not count: an ADD
// under an earlier name may be under way.
func (f *Facts) usesOf(l ipam.Listing) (hidden map[string]bool, latest map[string]use, sure bool) {
	hidden, latest = make(map[string]bool), make(map[string]use)
	for _, p := range l.Pools {
		for i := range p.Allocations {
			a := &p.Allocations[i]
			pod, _ := f.census.Pod(a.Owner.Pod)
			switch {
			case a.Foreign != "":
			case a.Unreadable != "":
				return nil, nil, false
			case !showsBooked(a, pod):
				hidden[a.Owner.Node], hidden[""] = true, true
			case a.Owner.Node != "" && f.now.Sub(pod.Created) > addWindow && !pod.Created.Before(latest[pod.Node].pod):
				latest[pod.Node] = use{a.Owner.Node, pod.Created}
			}
		}
	}
	return hidden, latest, true
}
