package judge

import (
	"cmp"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func unreadable(_ *Facts, a *ipam.Allocation) (Ruling, bool) {
	switch {
	case a.Unreadable != "":
		return match(a.Unreadable, Evidence{fromStore, a.Unreadable})
	case a.Foreign == "" && a.HoldsAddress() && !a.IP.IsValid():
		return match("the allocation has no address", Evidence{fromStore, "the allocation has no address"})
	}
	return noMatch()
}

func notPodOwned(_ *Facts, a *ipam.Allocation) (Ruling, bool) {
	if a.Foreign == "" {
		return noMatch()
	}
	return match(a.Foreign, Evidence{fromStore, a.Foreign})
}

func namesNoOwner(_ *Facts, a *ipam.Allocation) (Ruling, bool) {
	if !a.HoldsAddress() || a.NamesPod() || a.Owner.Pod == (ipam.PodRef{}) && a.Owner.Sandbox != "" {
		return noMatch()
	}
	return match("it names no pod", Evidence{fromStore, "it names no pod"})
}

func noCensus(f *Facts, _ *ipam.Allocation) (Ruling, bool) {
	if !f.census.Began().IsZero() {
		return noMatch()
	}
	return match("", Evidence{fromPods, "none was read after the allocations"})
}

func ownPodShowsIt(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if !a.HoldsAddress() || !a.NamesPod() {
		return noMatch()
	}
	pod, ok := f.ownWitness(a)
	if !ok {
		return noMatch()
	}
	return match("", Evidence{sourceOf(pod, a.IP), "the pod shows the address"})
}

func otherPodShowsIt(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if a.Protects != nil {
		return protectedInUse(f, a)
	}
	if !a.HoldsAddress() {
		return noMatch()
	}
	pod, ok := f.otherWitness(a)
	if !ok {
		return noMatch()
	}
	return match("shown by pod "+pod.Ref.String(), Evidence{sourceOf(pod, a.IP), "pod " + pod.Ref.String() + " shows the address"})
}

// protectedInUse matches if a pod that is believed shows one of the addresses that the
// allocation protects.
func protectedInUse(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	for _, ip := range a.Protects.IPs {
		for pod := range f.census.Showing(ip) {
			if !f.believes(a, pod, ip) {
				continue
			}
			says := "pod " + pod.Ref.String() + " shows " + ip.String()
			return match(ip.String()+" is shown by pod "+pod.Ref.String(), Evidence{sourceOf(pod, ip), says})
		}
	}
	return noMatch()
}

func machineHasIt(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if !a.HoldsAddress() {
		return noMatch()
	}
	for _, m := range f.census.Machines(a.IP) {
		if f.unclaimed && !m.Launches(a.Owner.Pod) {
			continue
		}
		name := "virtual machine " + m.Namespace + "/" + m.Name
		return match("reported by "+name, Evidence{name, "its guest reports the address"})
	}
	return noMatch()
}

func nodeShowsIt(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	by, ok := f.NodeShowing(a)
	if !ok {
		return noMatch()
	}
	return match("shown by "+by.Source, by)
}

// NodeShowing returns the node that shows the address of the allocation as its own, and whether
// there is one.
func (f *Facts) NodeShowing(a *ipam.Allocation) (Evidence, bool) {
	tunnels := f.Pool(a).Tunnels
	if tunnels == nil || !a.HoldsAddress() {
		return Evidence{}, false
	}
	if n, shown := f.census.Tunnel(a.IP); shown {
		return Evidence{"node " + n.Name, "its annotation " + n.Tunnels[a.IP] + " has the address"}, true
	}
	name, shown := tunnels[a.IP]
	return Evidence{fromStoreNode + name, "it has the address for a tunnel"}, shown
}

// mayHaveIt matches if something that does not show all of its addresses may have this one.
func mayHaveIt(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if ruling, ok := tooMuch(f, a); ok {
		return ruling, true
	}
	return machineMayHaveIt(f, a)
}

// machineMayHaveIt matches if the guest of a virtual machine may have kept the address of a pod
// that is gone. Without an agent in the guest, KubeVirt knows no address on a secondary
// interface. An allocation that is older than the machine is of an earlier one of that name.
func machineMayHaveIt(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	pod, presence := f.census.Pod(a.Owner.Pod)
	m, ok := f.census.Launched(a.Owner.Pod)
	earlier := !a.Created.IsZero() && m.Created.Sub(a.Created) > maxClockSkew
	if !ok || earlier || !a.HoldsAddress() || presence == census.Present && !pod.Finished {
		return noMatch()
	}
	name := "virtual machine " + m.Namespace + "/" + m.Name
	return match(name+" does not report all addresses of its guest: run the guest agent in it, or stop it",
		Evidence{name, "its guest may have kept the address, and does not report all that it has"})
}

func sandboxShown(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if _, shown := f.sandboxClaimant(a); !shown || f.unclaimed {
		return noMatch()
	}
	return match("a pod shows its sandbox", Evidence{fromCalico, "a pod shows the sandbox " + a.Owner.Sandbox})
}

// sandboxClaimant returns a pod that shows the sandbox of an allocation without a name or
// without an address. Only an annotation shows a sandbox.
func (f *Facts) sandboxClaimant(a *ipam.Allocation) (ipam.PodRef, bool) {
	byName := a.NamesPod() && !a.EmptyHandle
	ref, shown := f.census.InSandbox(a.Owner.Sandbox)
	return ref, shown && !byName && a.Protects == nil
}

func podNotRead(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	_, presence := f.census.Pod(a.Owner.Pod)
	namesNone := a.Owner.Pod == ipam.PodRef{} && !a.EmptyHandle
	if presence != census.Unknown || namesNone {
		return noMatch()
	}
	return match("", Evidence{fromPods, "the pod could not be read"})
}

func ordinalWanted(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if a.EmptyHandle || f.neverAdopted(a) || f.policy.Protection.StatefulSets == policy.Ignore {
		return noMatch()
	}
	set, wanted := f.census.Wants(a.Owner.Pod)
	if _, presence := f.census.Pod(a.Owner.Pod); !wanted || presence != census.Absent {
		return noMatch()
	}
	return match("its StatefulSet brings the pod back", wantedBy(set))
}

// neverAdopted reports whether no later sandbox of the pod can adopt the allocation, or another one
// of its group: then the pod gets other addresses.
func (f *Facts) neverAdopted(a *ipam.Allocation) bool {
	return a.NeverAdopted || slices.ContainsFunc(f.owned.groups.others(nil, a, a.Group),
		func(s *ipam.Allocation) bool { return s.NeverAdopted })
}

func unnamed(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	_, presence := f.census.Pod(a.Owner.Pod)
	hiding := f.hiding() > 0 // such a pod may have this address
	held := f.policy.Pods.Unnamed != policy.Release
	switch {
	case a.Protects != nil && len(a.Protects.IPs) == 0 && a.Owner.Pod == ipam.PodRef{}:
		return match("it names neither an address nor a pod", Evidence{fromStore, "it names neither an address nor a pod"})
	case a.EmptyHandle && presence == census.Absent && !a.NamesPod() && (a.Owner.Sandbox == "" || a.Owner.Pod != ipam.PodRef{}):
		return match("it names neither a pod nor a sandbox", Evidence{fromStore, "it names neither a pod nor a sandbox"})
	case !a.HoldsAddress():
		return noMatch()
	case !a.NamesPod() && held:
		return match("it names only a sandbox", Evidence{fromStore, "it names only a sandbox"}, Evidence{fromPolicy, "pods.unnamed is hold"})
	case !a.NamesPod() && hiding:
		return match("it names only a sandbox, and not every pod shows its addresses",
			Evidence{fromStore, "it names only a sandbox"}, hidden(f.census))
	}
	return noMatch()
}

func finishedHeld(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if f.policy.Pods.Finished == policy.Release || !f.is(a, endedPod) {
		return noMatch()
	}
	return match("", Evidence{fromPodStatus, "the pod has ended"}, Evidence{fromPolicy, "pods.finished is hold"})
}

func sandboxHeld(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	_, state, other := f.state(a)
	if f.policy.Pods.Superseded == policy.Release || state != otherSandboxed {
		return noMatch()
	}
	note, evidence := otherAddress(other)
	return match(note, evidence, Evidence{fromPolicy, "pods.superseded is hold"})
}

func podPresent(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if !f.is(a, itsPod) {
		return noMatch()
	}
	return match("", Evidence{fromPods, "the pod exists"})
}

// mayHave returns the name of a pod or a virtual machine that may have the allocation's
// address, because it shows more addresses than are read; empty if there is none.
// As with other evidence, a finished pod counts only for an allocation that names no pod, and
// only if the policy holds the addresses of finished pods.
func (f *Facts) mayHave(a *ipam.Allocation) string {
	in := a.Owner.Pod.Namespace
	if a.Protects != nil {
		in = ""
	}
	c := f.census
	name := c.ShowingTooMuch(in)
	if in == "" && f.policy.Pods.Finished != policy.Release {
		name = cmp.Or(name, c.EndedShowingTooMuch())
	}
	return name
}

// tooMuch matches if the address may be one of those that were not read.
func tooMuch(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if !a.HoldsAddress() && a.Protects == nil {
		return noMatch()
	}
	name := f.mayHave(a)
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
