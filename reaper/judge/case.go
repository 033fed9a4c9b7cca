package judge

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"strings"
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

	// unclaimed is set if an annotation is evidence only for allocations of its own pod,
	// and hides nothing, and the report of a guest only for those of its own machine: see claimants.
	unclaimed bool
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
		c.known = knowledge{last: c.last(), grace: c.ledger.Grace(listed), restored: c.restoredAt()}
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
		var sibling Case
		for _, s := range siblings {
			if one, other := c.Owner.Sandbox, s.Owner.Sandbox; one == "" || other == "" || one == other {
				sibling.open(c.Facts, s)
				consider(sibling.seenOn())
			}
		}
	}
	return node
}

// knowsNode reports whether the node of the allocation is known, even if it is gone. It is
// not known if no node has that name, the store has its own names for nodes, or that name may mean
// another node, and no run saw the pod.
func (c *Case) knowsNode() bool {
	if exists := c.census.HasNode(c.Owner.Node); exists || c.Owner.Node == "" {
		return exists
	}
	seen := c.last().Node
	if c.misleads() && seen == c.Owner.Node { // a run did not see it, but took the name from a sibling
		seen = ""
	}
	return seen != "" || !c.stores[c.Backend].renames && !c.misleads()
}

// nodesOf yields the names of the nodes on which the sandbox may be: the one that the
// allocation names, the one on which a run saw the pod, if it is different, those for which
// either of these may be another name, and those that the store may mean by the first.
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
		for m := range c.meant() {
			for other := range c.nodesMeant(m) {
				if !yield(other) {
					return
				}
			}
		}
	}
}

// unreachable reports whether the node is unreachable, or one that the name may mean.
func (f *Facts) unreachable(node string) bool {
	return slices.ContainsFunc(f.mayMean(node), f.census.Unreachable)
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

// mayStillRunOn reports whether the node, or one that the name may mean, is unreachable,
// or became ready so recently that its kubelet may not have ended the pods that are gone.
func (f *Facts) mayStillRunOn(node string) bool {
	return slices.ContainsFunc(f.mayMean(node), func(name string) bool {
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

// A podState says how the pod that an allocation names relates to it.
type podState int

const (
	noPod          podState = iota // there is none, or it is not known
	itsPod                         // it has the allocation
	endedPod                       // it has succeeded or failed
	replacedPod                    // it has another UID
	movedPod                       // it is on another node
	youngerPod                     // it is younger than the allocation
	hostPod                        // it is on the network of its node
	otherSandboxed                 // it has a later sandbox with another address
)

// state returns how the pod that the allocation names relates to it, and the address of a later
// sandbox. Only a pod that exists may be evidence against an allocation.
func (c *Case) state() (podState, netip.Addr) {
	if !c.stateKnown {
		c.podState, c.later = c.findState()
		c.stateKnown = true
	}
	return c.podState, c.later
}

// findState works out what state keeps.
//
// The stronger reason is asked first, except for a finished pod that shows the address: the
// allocation is surely its own.
func (c *Case) findState() (podState, netip.Addr) {
	none := netip.Addr{}
	switch pod := c.Pod; {
	case c.Presence != census.Present:
		return noPod, none
	case !c.HoldsAddress():
		return itsPod, none
	case pod.Finished && pod.Shows(c.IP):
		return endedPod, none
	case c.Owner.UID != "" && pod.UID != "" && c.Owner.UID != pod.UID:
		return replacedPod, none
	case c.moved() && !c.hasNameOfMirror():
		return movedPod, none
	case c.ofEarlierPod() && !c.hasNameOfMirror():
		return youngerPod, none
	case c.onHost():
		return hostPod, none
	}
	if later, replaced := c.replacement(); replaced {
		return otherSandboxed, later
	}
	if c.Pod.Finished {
		return endedPod, none
	}
	return itsPod, none
}

// is reports whether the state of the allocation's pod is the given one.
func (c *Case) is(want podState) bool {
	state, _ := c.state()
	return state == want
}

// moved reports whether the pod is on a different node than the allocation: a pod never changes
// its node, so the allocation is of an earlier pod of that name.
//
// The store itself must name the node, and name nodes as the API server does: the
// allocation's node must exist, or the store must have an allocation on the pod's node. No pod on
// another node may get the allocation.
// The pod must be on a ready node, on which it cannot adopt the allocation, and must not hide an
// address: otherwise it may have the address and be unable to show it. If the store has an address of the pod's status on
// a different node than the pod, its names of nodes prove nothing. Nor does a name that may be
// another one of the pod's node, or that has meant another node than its own.
func (c *Case) moved() bool {
	pod := c.Pod
	if pod.Finished || pod.Shows(c.IP) || pod.AddressUnknown && !pod.Starting || pod.LeavesOut && !c.SandboxOwned() {
		return false
	}
	for _, ip := range pod.Status() {
		for o := range c.owned.of(ip, pod.Ref) {
			if o.Backend == c.Backend && o.Owner.Node != "" && o.Owner.Node != pod.Node {
				return false
			}
		}
	}
	for _, other := range strings.Fields(c.AlsoOn) {
		if slices.Contains(c.mayMean(other), pod.Node) {
			return false
		}
	}
	exists := c.census.HasNode(c.Owner.Node)
	named := c.Owner.Node != "" && !c.nodeLearned && (exists || c.stores[c.Backend].nodes[pod.Node])
	return c.Adoption != ipam.Adoptable && named && pod.Node != c.Owner.Node && c.census.Node(pod.Node).Ready &&
		!slices.Contains(c.census.MayBe(c.Owner.Node), pod.Node) && !c.misleads()
}

// ofEarlierPod reports whether the allocation is older than the pod of that name, and so of
// an earlier one, where no sandbox adopts the allocation of another.
//
// If the clock of a node is slow, an allocation of the pod itself may look older. So it must be
// older, by as much as madeBefore requires for different clocks, than both the pod and what the same
// clock says of its start. And the pod must be waiting for its address, on a node that can show it, or
// on none, where no ADD was made for it. A kubelet shows the address after it has pulled the images,
// which takes time.
func (c *Case) ofEarlierPod() bool {
	pod := c.Pod
	if !c.SandboxOwned() || c.Created.IsZero() || pod.Created.IsZero() || pod.Created.Sub(c.Created) <= addWindow {
		return false
	}
	if pod.Node != "" && pod.Started.Sub(c.Created) <= addWindow {
		return false
	}
	return c.waits(pod) && !pod.Shows(c.IP)
}

// onHost reports whether the pod is on the network of its node, and so was never given an address: a
// container runtime calls no plugin for it, and its spec does not change. The allocation is of an
// earlier pod of that name.
//
// A mirror, which has no time, proves nothing about the sandbox of its static pod: that may be of an
// earlier manifest. On Windows, a pod that asks for the network of its node may get an address all the same:
// containerd calls the plugins unless it is a HostProcess pod.
func (c *Case) onHost() bool {
	pod := c.Pod
	if !c.census.ReadsNodes() || c.census.Node(pod.Node).Windows {
		return false
	}
	return pod.HostNetwork && !pod.Finished && !pod.Created.IsZero() && c.Owner.UID == "" && !c.hasNameOfMirror()
}

// hasNameOfMirror reports whether the pod is no mirror, and has a name that the mirror of a static pod
// may have. While it exists, a kubelet that runs that static pod can make no mirror of it.
func (c *Case) hasNameOfMirror() bool {
	if c.Pod.Created.IsZero() {
		return false
	}
	name := c.Pod.Ref.Name
	for i := range len(name) {
		if name[i] == '-' && c.census.HasNode(name[i+1:]) {
			return true
		}
	}
	return false
}

// waits reports whether the pod is not up yet, on a ready node or on none, and hides nothing.
func (f *Facts) waits(pod census.Pod) bool {
	visible := pod.Node == "" || f.census.Node(pod.Node).Ready && pod.Starting
	return visible && !pod.Finished && pod.InStatus == 0
}

// addWindow is the shortest wait, for any policy, before an allocation counts as
// replaced by a newer sandbox. During the setup of a new sandbox, the pod still shows
// the address of the old one, and the new allocation looks like the replaced one. The
// kubelet gives the setup of a sandbox 4 minutes: twice its runtimeRequestTimeout of 2
// minutes (k8s.io/cri-client, RunPodSandbox).
const addWindow = 4 * time.Minute

// replacement returns the address of a later sandbox of the pod, if the store proves that
// the sandbox is later. For one UID, the kubelet makes a sandbox only when the previous one is
// dead. The sandbox of an earlier pod of that name may still be ending, and ripen waits for it.
//
// The pod must also show that sandbox or its address; or, where each sandbox has its own allocation, its
// status, or the endpoint of a pod that waits. An annotation alone proves nothing: the owner of a pod may
// write any on it. Nor does the status of a pod without a sandbox, which is that of an earlier one.
func (c *Case) replacement() (netip.Addr, bool) {
	pod := c.Pod
	// An allocation without an interface may be of a network that is left out.
	if pod.LeavesOut && !c.SandboxOwned() && c.Owner.Interface == "" {
		return netip.Addr{}, false
	}
	if c.Owner.Sandbox == "" || c.inStatus(c.Owner.Sandbox) {
		return netip.Addr{}, false
	}
	if c.SandboxOwned() {
		switch endpoint := c.endpoint(); {
		case pod.Node != c.Owner.Node && (c.misleads() || slices.Contains(c.census.MayBe(c.Owner.Node), pod.Node)):
			return netip.Addr{}, false // the endpoint is under another name of the node, and was not read
		case endpoint.Claims(c.Allocation):
			return netip.Addr{}, false
		case pod.InStatus == 0:
			return c.replacedBy(endpoint)
		}
	}
	if pod.AddressUnknown || len(pod.Addresses) == 0 || pod.NoSandbox && !pod.Finished {
		return netip.Addr{}, false
	}
	for _, other := range c.shownInPlace() {
		if other.Owner.Pod == c.Owner.Pod && other.Owner.Sandbox != "" && other.Owner.Sandbox != c.Owner.Sandbox && c.supersededBy(other) {
			return other.IP, true
		}
	}
	return netip.Addr{}, false
}

// shownInPlace returns the allocations that the pod shows instead of this one.
//
// If each sandbox has its own allocation, they are those of the same store with an address of the
// status. If sandboxes adopt allocations, they are those of the same pool, on the
// interface of this allocation. Old versions of plugins named no interface: such an
// allocation may belong to any interface.
func (c *Case) shownInPlace() []*ipam.Allocation {
	pod := c.Pod
	var shown []*ipam.Allocation
	if c.SandboxOwned() {
		if pod.Sandbox == c.Owner.Sandbox {
			return nil
		}
		for _, other := range c.statusOwners() {
			if other.Backend == c.Backend {
				shown = append(shown, other)
			}
		}
		return shown
	}
	for _, i := range pod.Interfaces {
		for _, ip := range i.Addresses {
			for other := range c.owned.of(ip, c.Owner.Pod) {
				same := other.Backend == c.Backend && other.Pool == c.Pool && other.IP != c.IP
				if same && mayBelongTo(c.Allocation, i.Name) && mayBelongTo(other, i.Name) {
					shown = append(shown, other)
				}
			}
		}
	}
	slices.SortFunc(shown, func(a, b *ipam.Allocation) int { return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.Key, b.Key)) })
	return shown
}

// supersededBy reports whether the other allocation, which the pod shows, is proved to be of a later
// sandbox. Where each sandbox has its own allocation, the pod's status proves it, and the times of both
// must agree if they have any. Where sandboxes adopt allocations, the status proves it, or the plugin's
// version: one that names the interface is later than one that does not.
func (c *Case) supersededBy(other *ipam.Allocation) bool {
	switch {
	case c.SandboxOwned():
		return c.Created.IsZero() || other.Created.IsZero() || c.madeBefore(other)
	case c.inStatus(other.Owner.Sandbox):
		return true
	}
	return c.NeverAdopted() && c.Owner.Interface == "" && other.Owner.Interface != ""
}

// madeBefore reports whether the times of both allocations say that the other one is later. On
// another node, the clock may differ, so the times must be further apart. If the name of the node may mean
// several, only the pod's status says that the other one is on the pod's. A time in the future
// comes from a wrong clock, and proves nothing.
func (c *Case) madeBefore(other *ipam.Allocation) bool {
	skew := addWindow
	if c.Owner.Node != "" && other.Owner.Node == c.Owner.Node && (!c.misleads() || c.inStatus(other.Owner.Sandbox)) {
		skew = 0
	}
	return other.Created.Sub(c.Created) > skew && !other.Created.After(c.now)
}

// inStatus reports whether a store gives an address of the pod's status to this sandbox of
// the pod. Where sandboxes adopt allocations, only those in the store of the allocation
// count: an adopted overlapping-range reservation names its first sandbox for ever.
func (c *Case) inStatus(sandbox string) bool {
	return slices.ContainsFunc(c.statusOwners(), func(o *ipam.Allocation) bool { return o.Owner.Sandbox == sandbox })
}

// hasOtherSandbox reports whether the stores give the addresses of the pod's status to
// sandboxes of the pod other than the allocation's.
func (c *Case) hasOtherSandbox() bool {
	owners := c.statusOwners()
	return c.Owner.Sandbox != "" && len(owners) > 0 && !c.inStatus(c.Owner.Sandbox)
}

// statusOwners returns the allocations of the pod's status that name a sandbox.
func (c *Case) statusOwners() []*ipam.Allocation {
	var owners []*ipam.Allocation
	for _, ip := range c.Pod.Status() {
		for o := range c.owned.of(ip, c.Pod.Ref) {
			if o.Owner.Sandbox != "" && (o.SandboxOwned() || o.Backend == c.Backend) {
				owners = append(owners, o)
			}
		}
	}
	return owners
}

// mayBelongTo reports whether the allocation may belong to the interface.
func mayBelongTo(a *ipam.Allocation, iface string) bool {
	return a.Owner.Interface == "" || a.Owner.Interface == iface
}
