package judge

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func unreadable(c *Case) (Ruling, bool) {
	switch {
	case c.Unreadable != "":
		return match(c.Unreadable, Evidence{fromStore, c.Unreadable})
	case c.Foreign == "" && c.HoldsAddress() && !c.IP.IsValid():
		return match("the allocation has no address", Evidence{fromStore, "the allocation has no address"})
	}
	return noMatch()
}

func notPodOwned(c *Case) (Ruling, bool) {
	if c.Foreign == "" {
		return noMatch()
	}
	return match(c.Foreign, Evidence{fromStore, c.Foreign})
}

func namesNoOwner(c *Case) (Ruling, bool) {
	if !c.HoldsAddress() || c.NamesPod() || c.Owner.Pod == (ipam.PodRef{}) && c.Owner.Sandbox != "" {
		return noMatch()
	}
	return match("it names no pod", Evidence{fromStore, "it names no pod"})
}

func noCensus(c *Case) (Ruling, bool) {
	if !c.census.Began().IsZero() {
		return noMatch()
	}
	return match("", Evidence{fromPods, "none was read after the allocations"})
}

func ownPodShowsIt(c *Case) (Ruling, bool) {
	if !c.HoldsAddress() || !c.NamesPod() {
		return noMatch()
	}
	pod, ok := c.ownWitness()
	if !ok {
		return noMatch()
	}
	return match("", Evidence{sourceOf(pod, c.IP), "the pod shows the address"})
}

func otherPodShowsIt(c *Case) (Ruling, bool) {
	if c.Protects != nil {
		return protectedInUse(c)
	}
	if !c.HoldsAddress() {
		return noMatch()
	}
	pod, ok := c.otherWitness()
	if !ok {
		return noMatch()
	}
	return match("shown by pod "+pod.Ref.String(), Evidence{sourceOf(pod, c.IP), "pod " + pod.Ref.String() + " shows the address"})
}

// protectedInUse matches if a pod that is believed shows one of the addresses that the
// allocation protects.
func protectedInUse(c *Case) (Ruling, bool) {
	for _, ip := range c.Protects.IPs {
		for pod := range c.census.Showing(ip) {
			if !c.believes(pod, ip) {
				continue
			}
			says := "pod " + pod.Ref.String() + " shows " + ip.String()
			return match(ip.String()+" is shown by pod "+pod.Ref.String(), Evidence{sourceOf(pod, ip), says})
		}
	}
	return noMatch()
}

// ownWitness returns the pod that the allocation names, if the pod shows the address
// and so keeps it. A finished pod is no witness for its own allocation.
func (c *Case) ownWitness() (census.Pod, bool) {
	for pod := range c.census.Showing(c.IP) {
		if pod.Ref == c.Owner.Pod && !pod.Finished {
			return pod, true
		}
	}
	return census.Pod{}, false
}

// believes reports whether the pod is evidence that the address of the allocation is in
// use. Its status always is. Its annotations count for an allocation of the pod, and for
// one that names no pod, which may be its own. For one that names another pod, the policy
// decides.
func (c *Case) believes(pod census.Pod, ip netip.Addr) bool {
	switch {
	case pod.Ref == c.Owner.Pod || pod.Proves(ip):
		return true
	case c.unclaimed:
		return false
	}
	return c.policy.Evidence.Annotations != policy.OwnAnnotations || !c.NamesPod()
}

// otherWitness returns a pod that the allocation does not name, but that shows the
// address and so keeps it.
//
// A finished pod is no witness for an allocation that names another pod. It is one for
// an allocation that names no pod, which may be its own, unless the policy releases the
// addresses of finished pods, or the container runtime decides on the sandbox.
func (c *Case) otherWitness() (census.Pod, bool) {
	for pod := range c.OthersShowing() {
		if !pod.Finished || !c.ByRuntime && c.policy.Pods.Finished != policy.Release && !c.NamesPod() {
			return pod, true
		}
	}
	return census.Pod{}, false
}

// OthersShowing yields the believed pods that the allocation does not name, but that show
// the address. A pod to which the same backend gives the same address in another network
// is not among them: it shows that other allocation.
func (c *Case) OthersShowing() iter.Seq[census.Pod] {
	return func(yield func(census.Pod) bool) {
		for pod := range c.census.Showing(c.IP) {
			another := pod.Ref != c.Owner.Pod && !c.hasItElsewhere(pod.Ref)
			if another && c.believes(pod, c.IP) && !yield(pod) {
				return
			}
		}
	}
}

// hasItElsewhere reports whether the pod has the same address through an allocation of
// another network.
func (c *Case) hasItElsewhere(pod ipam.PodRef) bool {
	here := c.PoolOf(c.Allocation).Network
	for o := range c.owned.of(c.IP, pod) {
		if o.Backend != c.Backend || o.Pool == c.Pool {
			continue
		}
		if there := c.PoolOf(o).Network; there != "" && here != "" && there != here {
			return true
		}
	}
	return false
}

func machineHasIt(c *Case) (Ruling, bool) {
	if !c.HoldsAddress() {
		return noMatch()
	}
	for _, m := range c.census.Machines(c.IP) {
		if c.unclaimed && !m.Launches(c.Owner.Pod) {
			continue
		}
		name := "virtual machine " + m.Namespace + "/" + m.Name
		return match("reported by "+name, Evidence{name, "its guest reports the address"})
	}
	return noMatch()
}

func nodeShowsIt(c *Case) (Ruling, bool) {
	by, ok := c.NodeShowing()
	if !ok {
		return noMatch()
	}
	return match("shown by "+by.Source, by)
}

// NodeShowing returns the node that shows the address of the allocation as its own, and whether
// there is one.
func (c *Case) NodeShowing() (Evidence, bool) {
	tunnels := c.PoolOf(c.Allocation).Tunnels
	if tunnels == nil || !c.HoldsAddress() {
		return Evidence{}, false
	}
	if n, shown := c.census.Tunnel(c.IP); shown {
		return Evidence{"node " + n.Name, "its annotation " + n.Tunnels[c.IP] + " has the address"}, true
	}
	name, shown := tunnels[c.IP]
	return Evidence{fromStoreNode + name, "it has the address for a tunnel"}, shown
}

// mayHaveIt matches if something that does not show all of its addresses may have this one.
func mayHaveIt(c *Case) (Ruling, bool) {
	if ruling, ok := tooMuch(c); ok {
		return ruling, true
	}
	return machineMayHaveIt(c)
}

// machineMayHaveIt matches if the guest of a virtual machine may have kept the address of a pod
// that is gone. Without an agent in the guest, KubeVirt knows no address on a secondary
// interface. An allocation that is older than the machine is of an earlier one of that name.
func machineMayHaveIt(c *Case) (Ruling, bool) {
	m, ok := c.census.Launched(c.Owner.Pod)
	earlier := !c.Created.IsZero() && m.Created.Sub(c.Created) > maxClockSkew
	if !ok || earlier || !c.HoldsAddress() || c.Presence == census.Present && !c.Pod.Finished {
		return noMatch()
	}
	name := "virtual machine " + m.Namespace + "/" + m.Name
	return match(name+" does not report all addresses of its guest: run the guest agent in it, or stop it",
		Evidence{name, "its guest may have kept the address, and does not report all that it has"})
}

func sandboxShown(c *Case) (Ruling, bool) {
	if _, shown := c.sandboxClaimant(); !shown || c.unclaimed {
		return noMatch()
	}
	return match("a pod shows its sandbox", Evidence{fromCalico, "a pod shows the sandbox " + c.Owner.Sandbox})
}

// sandboxClaimant returns a pod that shows the sandbox of an allocation without a name or
// without an address. Only an annotation shows a sandbox.
func (c *Case) sandboxClaimant() (ipam.PodRef, bool) {
	byName := c.NamesPod() && !c.EmptyHandle
	ref, shown := c.census.InSandbox(c.Owner.Sandbox)
	return ref, shown && !byName && c.Protects == nil
}

func podNotRead(c *Case) (Ruling, bool) {
	namesNone := c.Owner.Pod == ipam.PodRef{} && !c.EmptyHandle
	if c.Presence != census.Unknown || namesNone {
		return noMatch()
	}
	return match("", Evidence{fromPods, "the pod could not be read"})
}

func ordinalWanted(c *Case) (Ruling, bool) {
	if c.EmptyHandle || c.neverAdopted() || c.policy.Protection.StatefulSets == policy.Ignore {
		return noMatch()
	}
	set, wanted := c.census.Wants(c.Owner.Pod)
	if !wanted || c.Presence != census.Absent {
		return noMatch()
	}
	return match("its StatefulSet brings the pod back", wantedBy(set))
}

// neverAdopted reports whether no later sandbox of the pod can adopt the allocation, or another one
// of its group: then the pod gets other addresses.
func (c *Case) neverAdopted() bool {
	return c.NeverAdopted() || slices.ContainsFunc(c.owned.groups.others(nil, c.Allocation, c.Group),
		func(s *ipam.Allocation) bool { return s.NeverAdopted() })
}

func unnamed(c *Case) (Ruling, bool) {
	hiding := c.hiding() > 0 // such a pod may have this address
	held := c.policy.Pods.Unnamed != policy.Release
	switch {
	case c.Protects != nil && len(c.Protects.IPs) == 0 && c.Owner.Pod == ipam.PodRef{}:
		return match("it names neither an address nor a pod", Evidence{fromStore, "it names neither an address nor a pod"})
	case c.EmptyHandle && c.Presence == census.Absent && !c.NamesPod() && (c.Owner.Sandbox == "" || c.Owner.Pod != ipam.PodRef{}):
		return match("it names neither a pod nor a sandbox", Evidence{fromStore, "it names neither a pod nor a sandbox"})
	case !c.HoldsAddress():
		return noMatch()
	case !c.NamesPod() && held:
		return match("it names only a sandbox", Evidence{fromStore, "it names only a sandbox"}, Evidence{fromPolicy, "pods.unnamed is hold"})
	case !c.NamesPod() && hiding:
		return match("it names only a sandbox, and not every pod shows its addresses",
			Evidence{fromStore, "it names only a sandbox"}, hidden(c.census))
	}
	return noMatch()
}

func finishedHeld(c *Case) (Ruling, bool) {
	if c.policy.Pods.Finished == policy.Release || !c.is(endedPod) {
		return noMatch()
	}
	return match("", Evidence{fromPodStatus, "the pod has ended"}, Evidence{fromPolicy, "pods.finished is hold"})
}

func sandboxHeld(c *Case) (Ruling, bool) {
	state, other := c.state()
	if c.policy.Pods.Superseded == policy.Release || state != otherSandboxed {
		return noMatch()
	}
	note, evidence := otherAddress(other)
	return match(note, evidence, Evidence{fromPolicy, "pods.superseded is hold"})
}

func podPresent(c *Case) (Ruling, bool) {
	if !c.is(itsPod) {
		return noMatch()
	}
	return match("", Evidence{fromPods, "the pod exists"})
}

// mayHave returns the name of a pod or a virtual machine that may have the allocation's
// address, because it shows more addresses than are read; empty if there is none.
// As with other evidence, a finished pod counts only for an allocation that names no pod, and
// only if the policy holds the addresses of finished pods.
func (c *Case) mayHave() string {
	in := c.Owner.Pod.Namespace
	if c.Protects != nil {
		in = ""
	}
	name := c.census.ShowingTooMuch(in)
	if in == "" && c.policy.Pods.Finished != policy.Release {
		name = cmp.Or(name, c.census.EndedShowingTooMuch())
	}
	return name
}

// tooMuch matches if the address may be one of those that were not read.
func tooMuch(c *Case) (Ruling, bool) {
	if !c.HoldsAddress() && c.Protects == nil {
		return noMatch()
	}
	name := c.mayHave()
	if name == "" {
		return noMatch()
	}
	note := name + " shows more addresses than ip-reaper reads"
	return match(note, Evidence{name, "it shows more addresses than ip-reaper reads, and this may be one of them"})
}

// ExcessWarnings names the pods and the virtual machines that show too much.
func ExcessWarnings(p policy.Policy, c census.Census) []string {
	names := c.AllShowingTooMuch(p.Pods.Unnamed == policy.Release && p.Pods.Finished != policy.Release)
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []string{"allocations that name no pod, or a pod of the same namespace, are kept because of too many addresses on " + printable.Some(names)}
}
