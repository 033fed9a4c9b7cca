package judge

import (
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A Case is all that is known about one allocation when it is judged: a rule asks it, and nothing
// else. It has the allocation with what is known of its owner from outside its store. What is
// costly is worked out when a rule first asks, and kept. A Case is for one goroutine.
type Case struct {
	*Facts
	*ipam.Allocation

	Pod      census.Pod // of the name that the allocation has; the zero Pod if there is none
	Presence census.Presence
	known    knowledge

	completed   ipam.Allocation // what Allocation points to, if it is not the one that was listed
	nodeLearned bool            // the node of its owner is not from the store

	podState   podState
	later      netip.Addr // of a later sandbox
	stateKnown bool

	others      []*ipam.Allocation // of the same sandbox or the same group
	othersKnown bool

	policyTerms policy.Terms
	termsKnown  bool

	lastPlace ledger.Place
	lastKnown bool
}

// knowledge is what the ledger remembers about an allocation.
type knowledge struct {
	last     ledger.Place  // of its pod; the zero place if the store names the node, or if it is not known
	grace    time.Duration // of its pod; 0 for the default
	restored time.Time     // when a restore put it back; zero if none did
}

// Case returns the case of an allocation as it is.
func (f *Facts) Case(a *ipam.Allocation) *Case {
	c := new(Case)
	c.open(f, a)
	return c
}

// caseIn returns the case of the allocation that was decided, by other facts.
func (d *Decision) caseIn(f *Facts) *Case {
	c := f.Case(d.Allocation)
	c.nodeLearned = d.nodeLearned
	return c
}

// open begins the case of an allocation.
func (c *Case) open(f *Facts, a *ipam.Allocation) {
	*c = Case{Facts: f, Allocation: a}
	c.Pod, c.Presence = f.census.Pod(a.Owner.Pod)
}

// complete completes the allocation with what other allocations, the pods and the ledger know
// about it. Two allocations of one sandbox know about each other, even in different stores, and so
// do those of a group.
func (c *Case) complete() {
	listed := c.Allocation
	if !listed.ProvesOwner() {
		c.known = knowledge{last: c.last(), restored: c.restoredAt()}
		return
	}
	c.completed = *listed
	c.Allocation = &c.completed
	var seen string
	if listed.Owner.Node != "" {
		seen = c.seenOn() // of the pod that the store itself names
	}
	if siblings := c.siblings(); len(siblings) > 0 {
		if listed.Owner.Pod == (ipam.PodRef{}) {
			c.completed.Owner.Pod = podOf(siblings)
			c.Pod, c.Presence = c.census.Pod(c.completed.Owner.Pod)
		}
		for _, s := range siblings {
			if listed.Created.IsZero() {
				c.completed.Created = latest(c.completed.Created, s.Created)
			}
		}
	}
	c.known = knowledge{grace: c.grace(), restored: c.restoredAt(), last: c.last()}
	if listed.Owner.Node == "" {
		seen = c.node()
		c.completed.Owner.Node = seen
		c.nodeLearned = seen != ""
	}
	if c.known.last.Boot == "" { // otherwise its pod hung there
		c.known.last = ledger.Place{Node: seen}
	}
	if c.known.last.Node == listed.Owner.Node && c.known.last.Boot == "" {
		c.known.last = ledger.Place{} // the store says the same
	}
	if c.completed == *listed {
		c.Allocation = listed
	}
}

// last returns where a run last saw the pod of the allocation.
func (c *Case) last() ledger.Place {
	if !c.lastKnown {
		c.lastPlace, c.lastKnown = c.ledger.Last(c.Allocation), true
	}
	return c.lastPlace
}

// terms returns the policy's terms for the allocation. For an allocation that names no pod and
// holds no address, or is blank, they come from the rules that match by backend alone: rules
// that match by name would keep it for ever.
func (c *Case) terms() policy.Terms {
	if !c.termsKnown {
		c.policyTerms = c.policy.Terms(c.Owner.Pod.Namespace, c.Owner.Pod.Name, c.Backend)
		if (!c.HoldsAddress() || c.Blank) && c.Owner.Pod == (ipam.PodRef{}) {
			c.policyTerms = c.policy.BackendTerms(c.Backend)
		}
		c.termsKnown = true
	}
	return c.policyTerms
}

// siblings returns the other allocations of the same sandbox or of the same group. If
// two name different pods, they have nothing in common.
func (c *Case) siblings() []*ipam.Allocation {
	if !c.othersKnown {
		c.others = c.owned.sandboxes.others(nil, c.Allocation, c.Owner.Sandbox)
		c.others = c.owned.groups.others(c.others, c.Allocation, c.Group)
		c.othersKnown = true
	}
	return c.others
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

// node returns the node on which the pod of the allocation is, or was last seen, as pods, ledger and
// siblings say. If they disagree, it returns a node that is unreachable. A node that another store
// names counts only if that store names nodes as the API server does. Where a sibling was seen
// counts only if it may be of the same sandbox: an overlapping-range reservation keeps the old
// sandbox of a pod that came back elsewhere.
func (c *Case) node() string {
	node, siblings := c.seenOn(), c.siblings()
	consider := func(other string) {
		if node == "" || other != "" && c.unreachable(other) && !c.unreachable(node) {
			node = other
		}
	}
	for _, s := range siblings {
		if c.census.HasNode(s.Owner.Node) || len(c.stores[s.Backend].nodes) > 0 {
			consider(s.Owner.Node)
		}
	}
	if node == "" {
		for _, s := range siblings {
			if one, other := c.Owner.Sandbox, s.Owner.Sandbox; one == "" || other == "" || one == other {
				consider(c.Case(s).seenOn())
			}
		}
	}
	return node
}

// knowsNode reports whether the node of the allocation is known, even if it is gone. It is
// not known if no node has that name, the store has its own names for nodes, and no run saw
// the pod.
func (c *Case) knowsNode() bool {
	exists := c.census.HasNode(c.Owner.Node)
	renamed := !exists && c.stores[c.Backend].renames && c.last().Node == ""
	return c.Owner.Node != "" && !renamed
}

// nodesOf yields the names of the nodes on which the sandbox may be: the one that the
// allocation names, the one on which a run saw the pod, if it is different, and those for which
// either of these may be another name.
func (c *Case) nodesOf() iter.Seq[string] {
	return func(yield func(string) bool) {
		named, seen := c.Owner.Node, c.last().Node
		if !yield(named) || seen != "" && seen != named && !yield(seen) {
			return
		}
		for _, name := range []string{named, seen} {
			for _, other := range c.census.MayBe(name) {
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
func (c *Case) restoredAt() time.Time {
	at := c.ledger.RestoredAt(c.Allocation)
	if at.After(c.now) {
		return c.now
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
func (c *Case) seenOn() string {
	known := c.last().Node
	pod := c.Pod
	switch {
	case c.Presence != census.Present || pod.Node == "" || !pod.Shows(c.IP):
		return known
	case pod.Proves(c.IP):
		return pod.Node
	case known != "" && c.mayStillRunOn(known), c.hasOtherSandbox():
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
func (c *Case) grace() time.Duration {
	grace := c.ledger.Grace(c.Allocation)
	if c.Presence == census.Present {
		if c.Pod.Proves(c.IP) {
			grace = 0
		}
		grace = max(grace, c.Pod.TerminationGrace)
	}
	for _, s := range c.siblings() {
		grace = max(grace, c.ledger.Grace(s))
	}
	if grace <= defaultTermination {
		return 0
	}
	return min(grace, ledger.MaxGrace*time.Second)
}
