package judge

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func unreadable(c *Case) (Ruling, bool) {
	if c.Unreadable == "" && c.Foreign == "" && c.HoldsAddress() && !c.IP.IsValid() {
		return storeSays("the allocation has no address")
	}
	return storeSays(c.Unreadable)
}

func notPodOwned(c *Case) (Ruling, bool) {
	r, ok := storeSays(c.Foreign)
	if ok && c.ofGoneTunnel() {
		r.Evidence = append(r.Evidence, Evidence{fromNodes, "it has no node " + c.Owner.Node}, Evidence{fromHandle, cmp.Or(c.Group, "<none>")})
	}
	return r, ok
}

// ofGoneTunnel reports whether the address was that of a tunnel of a node that is surely of this cluster, and gone, and
// keeps a block of that node.
func (c *Case) ofGoneTunnel() bool {
	for range c.census.On(c.IP) {
		return false
	}
	return c.Tunnel && c.PoolOf(c.Allocation).Node == c.Owner.Node && c.stores[c.Backend].inside && c.nodeGone()
}

func namesNoOwner(c *Case) (Ruling, bool) {
	if !c.HoldsAddress() || c.NamesPod() || c.Owner.Pod == (ipam.PodRef{}) && c.Owner.Sandbox != "" {
		return noMatch()
	}
	return storeSays("it names no pod")
}

func noCensus(c *Case) (Ruling, bool) {
	if !c.census.Began().IsZero() {
		return noMatch()
	}
	return match("", Evidence{fromPods, "none was read after the allocations"})
}

// ownPodShowsIt matches if the pod that the allocation names shows the address. A finished pod is no
// witness for its own allocation.
func ownPodShowsIt(c *Case) (Ruling, bool) {
	if !c.HoldsAddress() || !c.NamesPod() {
		return noMatch()
	}
	own := census.Claimant{Kind: census.KindPod, Ref: c.Owner.Pod}
	for claim := range c.census.On(c.IP) {
		if claim.By == own && !claim.Ended {
			return match("", Evidence{claim.Source, "the pod shows the address"})
		}
	}
	return noMatch()
}

// claimedBy returns a Match that matches if a claim of one of these kinds keeps the allocation.
func claimedBy(kinds ...census.Kind) func(*Case) (Ruling, bool) {
	return func(c *Case) (Ruling, bool) {
		for claim := range c.keepingClaims {
			by := claim.By.String()
			switch {
			case !slices.Contains(kinds, claim.By.Kind):
			case claim.By.Kind == census.KindPod:
				return match("shown by "+by, Evidence{claim.Source, claim.String()})
			case claim.By.Kind == census.KindMachine:
				return match("reported by "+by, Evidence{by, "its guest reports the address"})
			case claim.By.Kind == census.KindSandbox:
				return match("libcni's cache has it for pod "+claim.By.Ref.String(),
					Evidence{fromRuntime, "it has the sandbox " + claim.Attachment.Sandbox}, Evidence{claim.Source, claim.String()})
			case claim.By.Kind == census.KindNode:
				return match("shown by "+by, Evidence{by, "its annotation " + claim.Source + " has the address"})
			default:
				return match("shown by "+by, Evidence{by, "it has the address for a tunnel"})
			}
		}
		return noMatch()
	}
}

// keepingClaims yields the claims of others that keep the allocation.
//
// A finished pod keeps no allocation that names another pod. It keeps one that names no pod, which
// may be its own, unless the policy releases the addresses of finished pods, or the container
// runtime decides on the sandbox.
func (c *Case) keepingClaims(yield func(census.Claim) bool) {
	endedKeeps := !c.ByRuntime && c.policy.Pods.Finished != policy.Release && !c.NamesPod()
	for claim := range c.ClaimsOfOthers {
		if (!claim.Ended || endedKeeps) && !yield(claim) {
			return
		}
	}
}

// ClaimsOfOthers yields the believed claims on the address of the allocation, except those of the pod
// that it names. A pod to which the same backend gives the same address in another network is not
// among the claimants: it shows that other allocation. Nor is a node if nodes take no addresses from
// the pools of the store, the sandbox of the allocation itself, or one that has the address elsewhere.
func (c *Case) ClaimsOfOthers(yield func(census.Claim) bool) {
	if !c.HoldsAddress() {
		return
	}
	tunnels := c.PoolOf(c.Allocation).Tunnels
	for claim := range c.census.On(c.IP) {
		switch by := claim.By; {
		case !c.believes(claim), by.Kind == census.KindNode && tunnels == nil:
		case by.Kind == census.KindPod && (by.Ref == c.Owner.Pod || c.hasItElsewhere(by.Ref)):
		case by.Kind == census.KindSandbox && c.isOfOther(claim):
		case !yield(claim):
			return
		}
	}
	if name, shown := tunnels[c.IP]; shown {
		by := census.Claimant{Kind: census.KindStoreNode, Ref: ipam.PodRef{Name: name}}
		yield(census.Claim{IP: c.IP, By: by, Source: fromStore, Proves: true})
	}
}

// believes reports whether the claim is evidence that the address of the allocation is in use. A
// claim that proves it always is, and so is one of its own pod or machine. The report of any other
// guest is, too. Any other annotation counts for an allocation that names no pod, which may be that
// of the annotated one. For one that names another pod, the policy decides.
func (c *Case) believes(claim census.Claim) bool {
	switch {
	case claim.Proves || claim.By.MayBe(c.Owner.Pod):
		return true
	case c.unclaimed:
		return false
	}
	return claim.By.Kind == census.KindMachine || c.policy.Evidence.Annotations != policy.OwnAnnotations || !c.NamesPod()
}

// claimants returns those whose claims alone keep the allocation, as the ruling says: without them, the
// rules that are left would give it up, now or at the end of its grace period. An empty handle has none,
// because it takes no address. It is asked last: it changes the case.
func (c *Case) claimants(kept Ruling) []census.Claimant {
	var found []census.Claimant
	switch {
	case c.EmptyHandle || kept.Rule == 0:
	case kept.Verdict == Held && kept.Reason == OwnerUnknown && len(c.census.Veiled()) > 0:
		found = []census.Claimant{{}}
	case kept.Verdict == InUse && (kept.Reason == AddressInUse || !c.NamesPod()):
		for claim := range c.keepingClaims {
			if !claim.Proves && !slices.Contains(found, claim.By) {
				found = append(found, claim.By)
			}
		}
		if pod, shown := c.sandboxClaimant(); shown {
			if by := (census.Claimant{Kind: census.KindPod, Ref: pod}); !slices.Contains(found, by) {
				found = append(found, by)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	c.unclaimed = true
	if left := c.askFrom(kept.Rule - 1); !left.waits() {
		return nil
	}
	return found
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

// isOfOther reports whether the claim of a sandbox is on another allocation than this one, if this one
// is not of that sandbox at all: another pool has the address for the very interface of the claim. A store
// that names no interface proves nothing: the sandbox may have the address on two.
func (c *Case) isOfOther(claim census.Claim) bool {
	of := claim.Attachment
	if c.Owner.Sandbox != "" && strings.HasPrefix(of.Sandbox, c.Owner.Sandbox) {
		return true
	}
	for o := range c.owned.of(c.IP, claim.By.Ref) {
		if o.ByRuntime && o.Pool != c.Pool && o.Owner.Sandbox == of.Sandbox && o.Owner.Interface == of.Interface {
			return true
		}
	}
	return false
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
	return match("a pod shows its sandbox", Evidence{census.CalicoAnnotation, "a pod shows the sandbox " + c.Owner.Sandbox})
}

// sandboxClaimant returns a pod that shows the sandbox of an allocation without a name or
// without an address. Only an annotation shows a sandbox.
func (c *Case) sandboxClaimant() (ipam.PodRef, bool) {
	byName := c.NamesPod() && !c.EmptyHandle
	ref, shown := c.census.InSandbox(c.Owner.Sandbox)
	return ref, shown && !byName
}

func podNotRead(c *Case) (Ruling, bool) {
	namesNone := c.Owner.Pod == ipam.PodRef{} && !c.EmptyHandle
	if c.Presence != census.Unknown || namesNone {
		return noMatch()
	}
	return match("", Evidence{fromPods, "the pod could not be read"})
}

func ordinalWanted(c *Case) (Ruling, bool) {
	by, wanted := c.wantedBack()
	if !wanted || c.Presence != census.Absent {
		return noMatch()
	}
	return match("its StatefulSet brings the pod back", by)
}

// wantedBack reports whether a StatefulSet wants a pod of that name, which can adopt the allocation, and
// what says so.
func (c *Case) wantedBack() (by Evidence, wanted bool) {
	if c.EmptyHandle || c.neverAdopted() || c.policy.Protection.StatefulSets == policy.Ignore {
		return Evidence{}, false
	}
	set, wanted := c.census.Wants(c.Owner.Pod)
	return Evidence{
		fromStatefulSet + set.Namespace + "/" + set.Name,
		fmt.Sprintf("it wants the ordinals %d to %d", set.Start, set.Start+set.Replicas-1),
	}, wanted
}

// neverAdopted reports whether no later sandbox of the pod can adopt the allocation, or another one
// of its group: then the pod gets other addresses. One that only a pod on one node can adopt, as its store says, goes
// with that node.
func (c *Case) neverAdopted() bool {
	boundToGone := c.Adoption == ipam.AdoptedOnNode && c.AlsoOn == "" && c.nodeGone()
	return c.NeverAdopted() || boundToGone || slices.ContainsFunc(c.owned.groups.others(nil, c.Allocation, c.Group),
		func(s *ipam.Allocation) bool { return s.NeverAdopted() })
}

// nodeGone reports whether the store names a node that is gone, by any name that it may have.
func (c *Case) nodeGone() bool {
	named := c.Owner.Node != "" && !c.nodeLearned && !c.misleads()
	return named && c.census.HasNodes() && c.knowsNode() && !c.census.HasNode(c.Owner.Node) && len(c.census.MayBe(c.Owner.Node)) == 0
}

func unnamed(c *Case) (Ruling, bool) {
	hiding := c.census.Hiding() > 0 // such a pod may have this address
	if c.unclaimed {
		hiding = c.census.Hiding() > len(c.census.Veiled())
	}
	held := c.policy.Pods.Unnamed != policy.Release
	switch {
	case c.EmptyHandle && c.Presence == census.Absent && !c.NamesPod() && (c.Owner.Sandbox == "" || c.Owner.Pod != ipam.PodRef{}):
		return storeSays("it names neither a pod nor a sandbox")
	case !c.HoldsAddress():
		return noMatch()
	case !c.NamesPod() && held:
		return match("it names only a sandbox", Evidence{fromStore, "it names only a sandbox"}, Evidence{fromPolicy, "pods.unnamed is hold"})
	case !c.NamesPod() && hiding:
		return match("it names only a sandbox, and not every pod shows its addresses",
			Evidence{fromStore, "it names only a sandbox"}, Evidence{fromPods, fmt.Sprintf("%d pods do not show their addresses", c.census.Hiding())})
	case !c.NamesPod() && c.incomplete:
		return match("it names only a sandbox, and what could not be read may name its pod",
			Evidence{fromStore, "it names only a sandbox"}, Evidence{fromStore, "another store, or a part of it, could not be read"})
	}
	return noMatch()
}

func finishedHeld(c *Case) (Ruling, bool) {
	if c.policy.Pods.Finished == policy.Release || !c.is(endedPod) {
		return noMatch()
	}
	return match("", Evidence{census.PodStatus, "the pod has ended"}, Evidence{fromPolicy, "pods.finished is hold"})
}

func sandboxHeld(c *Case) (Ruling, bool) {
	state, other := c.state()
	if c.policy.Pods.Superseded == policy.Release || state != otherSandboxed {
		return noMatch()
	}
	note, evidence := otherAddress(other)
	return match(note, evidence, Evidence{fromPolicy, "pods.superseded is hold"})
}

// podPresent says what the pod shows in place of the address, if it hides none. That keeps the
// allocation all the same: what a pod shows does not prove that it has given an address up.
func podPresent(c *Case) (Ruling, bool) {
	if !c.is(itsPod) {
		return noMatch()
	}
	exists := Evidence{fromPods, "the pod exists"}
	source, shown := c.shownInstead()
	if shown == "" {
		return match("", exists)
	}
	r, ok := match("its pod shows "+shown, exists, Evidence{source, "it shows " + shown})
	if by, wanted := c.wantedBack(); wanted {
		r.Evidence = append(r.Evidence, by)
	}
	r.ByName = true
	return r, ok
}

// primary is the interface of a pod that a container runtime has its network set up on.
const primary = "eth0"

// shownInstead returns what the pod shows on the interface of the allocation, or of the same IP family
// if that is not known, and what says so. Both are empty if the pod may hide an address, or is not set
// up yet. Without a network-status, something other than Multus may have attached other interfaces.
func (c *Case) shownInstead() (source, shown string) {
	pod, name := &c.Pod, c.Owner.Interface
	attached := len(pod.Interfaces) > 0
	if !c.HoldsAddress() || pod.InStatus == 0 || pod.HostNetwork || pod.AddressUnknown || pod.LeavesOut || !attached && name != "" && name != primary {
		return "", ""
	}
	var addresses []netip.Addr
	where := ""
	if attached && name != "" {
		for _, i := range pod.Interfaces {
			if i.Name == name {
				addresses = i.Addresses
			}
		}
		if len(addresses) == 0 {
			return census.NetworkStatus, "no address on " + name
		}
		where = " on " + name
	} else {
		for _, ip := range pod.Addresses {
			if ip.Is4() == c.IP.Is4() {
				addresses = append(addresses, ip)
			}
		}
		if len(addresses) == 0 {
			return "", ""
		}
	}
	names := make([]string, len(addresses))
	for i, ip := range addresses {
		names[i] = ip.String()
	}
	return pod.Claim(addresses[0]).Source, printable.Some(names) + where
}

// tooMuch matches if the address may be one of those that were not read: a pod or a virtual machine
// shows more than are read. As with other evidence, a finished pod counts only for an allocation that
// names no pod, and only if the policy holds the addresses of finished pods.
func tooMuch(c *Case) (Ruling, bool) {
	in := c.Owner.Pod.Namespace
	name := c.census.ShowingTooMuch(in)
	if in == "" && c.policy.Pods.Finished != policy.Release {
		name = cmp.Or(name, c.census.EndedShowingTooMuch())
	}
	if !c.HoldsAddress() || name == "" {
		return noMatch()
	}
	note := name + " shows more addresses than ip-reaper reads"
	return match(note, Evidence{name, "it shows more addresses than ip-reaper reads, and this may be one of them"})
}
