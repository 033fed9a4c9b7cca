package judge

import (
	"iter"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// knowledge is what the ledger remembers about an allocation.
type knowledge struct {
	last     ledger.Place  // of its pod; the zero place if the store names the node, or if it is not known
	grace    time.Duration // of its pod; 0 for the default
	restored time.Time     // when a restore put it back; zero if none did
}

// locate completes an allocation with what other allocations, the pods and the ledger know
// about it. Two allocations of one sandbox know about each other, even in different stores,
// and so do those of a group. It returns a if nothing is missing, or else learned, which it
// fills in.
func (f *Facts) locate(a, learned *ipam.Allocation) (*ipam.Allocation, knowledge) {
	if !a.ProvesOwner() {
		return a, knowledge{last: f.ledger.Last(a), restored: f.restoredAt(a)}
	}
	located, siblings := *a, f.siblings(a)
	if a.Owner.Pod == (ipam.PodRef{}) {
		located.Owner.Pod = podOf(siblings)
	}
	for _, s := range siblings {
		if a.Created.IsZero() {
			located.Created = latest(located.Created, s.Created)
		}
	}
	known := knowledge{grace: f.grace(&located, siblings), restored: f.restoredAt(&located)}
	var seen string
	if a.Owner.Node == "" {
		seen = f.node(&located, siblings)
		located.Owner.Node, located.NodeLearned = seen, seen != ""
	} else {
		seen = f.seenOn(a)
	}
	if known.last = f.ledger.Last(a); known.last.Boot == "" { // otherwise its pod hung there
		known.last = ledger.Place{Node: seen}
	}
	if known.last.Node == a.Owner.Node && known.last.Boot == "" {
		known.last = ledger.Place{} // the store says the same
	}
	if located == *a {
		return a, known
	}
	*learned = located
	return learned, known
}

// siblings returns the other allocations of the same sandbox or of the same group. If
// two name different pods, they have nothing in common.
func (f *Facts) siblings(a *ipam.Allocation) []*ipam.Allocation {
	siblings := f.owned.sandboxes.others(nil, a, a.Owner.Sandbox)
	return f.owned.groups.others(siblings, a, a.Group)
}

// podOf returns the pod that the allocations name; none if they name several.
func podOf(siblings []*ipam.Allocation) ipam.PodRef {
	var pod ipam.PodRef
	for _, s := range siblings {
		switch {
		case !s.NamesPod():
		case pod == ipam.PodRef{}:
			pod = s.Owner.Pod
		case s.Owner.Pod != pod:
			return ipam.PodRef{}
		}
	}
	return pod
}

// node returns the node on which the pod of the allocation is, or was last seen. If the
// sources disagree, it returns a node that is unreachable. A node that another store
// names counts only if that store names nodes as the API server does. Where a sibling was seen
// counts only if it may be of the same sandbox: an overlapping-range reservation keeps the old
// sandbox of a pod that came back elsewhere.
func (f *Facts) node(a *ipam.Allocation, siblings []*ipam.Allocation) string {
	node := f.seenOn(a)
	consider := func(other string) {
		if node == "" || other != "" && f.unreachable(other) && !f.unreachable(node) {
			node = other
		}
	}
	for _, s := range siblings {
		if f.census.HasNode(s.Owner.Node) || len(f.stores[s.Backend].nodes) > 0 {
			consider(s.Owner.Node)
		}
	}
	if node == "" {
		for _, s := range siblings {
			if one, other := a.Owner.Sandbox, s.Owner.Sandbox; one == "" || other == "" || one == other {
				consider(f.seenOn(s))
			}
		}
	}
	return node
}

// knowsNode reports whether the node of the allocation is known, even if it is gone. It is
// not known if no node has that name, the store has its own names for nodes, and no run saw
// the pod.
func (f *Facts) knowsNode(a *ipam.Allocation) bool {
	exists := f.census.HasNode(a.Owner.Node)
	renamed := !exists && f.stores[a.Backend].renames && f.ledger.Last(a).Node == ""
	return a.Owner.Node != "" && !renamed
}

// nodesOf yields the names of the nodes on which the sandbox may be: the one that the
// allocation names, the one on which a run saw the pod, if it is different, and those for which
// either of these may be another name.
func (f *Facts) nodesOf(a *ipam.Allocation) iter.Seq[string] {
	return func(yield func(string) bool) {
		named, seen := a.Owner.Node, f.ledger.Last(a).Node
		if !yield(named) || seen != "" && seen != named && !yield(seen) {
			return
		}
		for _, name := range []string{named, seen} {
			for _, other := range f.census.MayBe(name) {
				if !yield(other) {
					return
				}
			}
		}
	}
}

// unreachable reports whether the node is unreachable, or one for which it may be another name.
func (f *Facts) unreachable(node string) bool {
	return f.census.Unreachable(node) || slices.ContainsFunc(f.census.MayBe(node), f.census.Unreachable)
}

// restoredAt returns when a restore put the allocation back; zero if none did. A time in
// the future comes from a wrong clock, and counts as now.
func (f *Facts) restoredAt(a *ipam.Allocation) time.Time {
	at := f.ledger.RestoredAt(a)
	if at.After(f.now) {
		return f.now
	}
	return at
}

// seenOn returns the node on which the pod shows the address of the allocation, or did
// when a run last saw it. A pod of that name may be a different one, on another node, so
// its node counts only if it shows the address. The ledger loses the node if the
// allocation changes hands.
//
// An annotation may be false. It does not replace a node on which an earlier pod may still
// run. It names no node if the store has the pod's status address for another sandbox.
func (f *Facts) seenOn(a *ipam.Allocation) string {
	known := f.ledger.Last(a).Node
	pod, presence := f.census.Pod(a.Owner.Pod)
	switch {
	case presence != census.Present || pod.Node == "" || !pod.Shows(a.IP):
		return known
	case pod.Proves(a.IP):
		return pod.Node
	case known != "" && f.mayStillRunOn(known), f.hasOtherSandbox(a, pod):
		return known
	}
	return pod.Node
}

// mayStillRunOn reports whether the node, or one for which it may be another name, is unreachable,
// or became ready so recently that its kubelet may not have ended the pods that are gone.
func (f *Facts) mayStillRunOn(node string) bool {
	return slices.ContainsFunc(append(f.census.MayBe(node), node), func(name string) bool {
		n := f.census.ReadyAgain(name)
		return f.census.Unreachable(name) || !n.Since.IsZero() && f.now.Sub(n.Since).Abs() <= lateNews
	})
}

// grace returns how long the pod of the allocation may take to end, if that is longer
// than the default; otherwise 0. If the status of the pod of that name does not have the
// address, it may be another pod, and the longer grace counts.
func (f *Facts) grace(a *ipam.Allocation, siblings []*ipam.Allocation) time.Duration {
	grace := f.ledger.Grace(a)
	if pod, presence := f.census.Pod(a.Owner.Pod); presence == census.Present {
		if pod.Proves(a.IP) {
			grace = 0
		}
		grace = max(grace, pod.TerminationGrace)
	}
	for _, s := range siblings {
		grace = max(grace, f.ledger.Grace(s))
	}
	if grace <= defaultTermination {
		return 0
	}
	return min(grace, ledger.MaxGrace*time.Second)
}
