package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// nodeForeign holds what may be of another cluster that keeps its addresses in the same store. Only
// the exact name of a node proves that it is of this cluster.
func nodeForeign(c *Case) (Ruling, bool) {
	n := c.storeNode()
	if c.policy.Nodes.Foreign == policy.Release || !c.isForeign(n) || !c.HoldsAddress() {
		return noMatch()
	}
	name, says := n.Name, "it has no node "+n.Node
	if n.Node != n.Name && n.Node != "" {
		name += " (" + n.Node + " in its cluster)"
	}
	note := "the store has the node " + name + ", and the list of nodes does not"
	switch {
	case n.Node == "":
		note = "the node " + name + " of the store cannot be read"
		says = note
	case n.Twin != "":
		note = "the nodes " + n.Name + " and " + n.Twin + " of the store are both called " + n.Node + " in their clusters"
		says = "it has at most one node " + n.Node
	}
	if c.StoreNode == nil {
		note = "its node is unknown, and " + note
	}
	return match(note, Evidence{fromNodes, says}, Evidence{fromStoreNode + n.Name, "it may be of another cluster"})
}

// storeNode returns the node of the store for an allocation. If its node is not known at all, that
// may be any of the store's: then it is one that may be of another cluster. It is nil if there is
// none.
func (c *Case) storeNode() *ipam.StoreNode {
	if c.StoreNode == nil && c.Owner.Node == "" {
		return c.stores[c.Backend].foreign
	}
	return c.StoreNode
}

// isForeign reports whether a node of a store may be of another cluster.
func (f *Facts) isForeign(n *ipam.StoreNode) bool {
	return n != nil && (n.Twin != "" || !f.census.HasNode(n.Node))
}

func nodeUnreachable(c *Case) (Ruling, bool) {
	if c.policy.Nodes.Unreachable == policy.Release {
		return noMatch()
	}
	for name := range c.nodesOf() {
		if c.census.Unreachable(name) {
			evidence := []Evidence{NotReady(c.census.Node(name))}
			note := "node " + name + strings.TrimPrefix(evidence[0].Says, "it")
			if name != c.Owner.Node && name != c.last().Node {
				why, said := c.whyMeant(name)
				if why != "" {
					evidence = append(evidence, said)
				}
				note += ", and " + cmp.Or(why, "may be its node by another name")
			}
			return c.matchBeside(note, evidence)
		}
	}
	return noMatch()
}

// nodeUnknown holds what may be on any of the unreachable nodes. The node is also unknown
// if the store has its own names for nodes.
func nodeUnknown(c *Case) (Ruling, bool) {
	if c.policy.Nodes.Unknown == policy.Release {
		return noMatch()
	}
	var names []string
	var evidence []Evidence
	for _, n := range c.awayNodes() {
		if c.census.Unreachable(n.Name) {
			names, evidence = append(names, n.Name), append(evidence, NotReady(n))
		}
	}
	if len(names) == 0 {
		return noMatch()
	}
	note := "its node is unknown, and these are not ready: " + printable.Some(names)
	return c.matchBeside(note, evidence[:min(printable.MaxNamed, len(evidence))])
}

// Also comes, in the note of what waits for its node, before what holds it after that.
const Also = "; also "

// matchBeside is match for a hold that a node ends, with what holds the allocation after that, so that nobody fences a node
// for nothing.
func (c *Case) matchBeside(note string, evidence []Evidence) (Ruling, bool) {
	for _, rule := range []func(*Case) (Ruling, bool){outOfScope, heldByRule, restoredLately} {
		if also, held := rule(c); held {
			note, evidence = note+Also+also.Note, append(evidence, also.Evidence...)
		}
	}
	return match(note, evidence...)
}

// awayNodes returns the nodes that are not ready and on which the allocation may be, if its node is not known.
func (c *Case) awayNodes() []census.Node {
	if c.knowsNode() || c.nodeLearned && !c.misleads() || !c.HoldsAddress() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.census.Away()), func(n census.Node) bool { return !c.mayBeOn(n) })
}

// freedNodes says of the nodes that are not ready, and on which the sandbox may be, what alone lets the
// allocation go.
func (c *Case) freedNodes() (evidence []Evidence) {
	if c.ByRuntime { // nodes that are not ready hold none of these
		return nil
	}
	add := func(n census.Node, found policy.Disposition, field string) {
		why := NotReady(n)
		switch {
		case c.census.Fenced(n.Name) && found != policy.Release:
		case c.census.Unreachable(n.Name):
			why.Says += ", and " + field + " is release in the policy"
		default:
			return
		}
		if len(evidence) < printable.MaxNamed && !slices.Contains(evidence, why) {
			evidence = append(evidence, why)
		}
	}
	for name := range c.nodesOf() {
		add(c.census.Node(name), c.policy.Nodes.Unreachable, "nodes.unreachable")
	}
	for _, n := range c.awayNodes() {
		add(n, c.policy.Nodes.Unknown, "nodes.unknown")
	}
	return evidence
}

// mayBeOn reports whether the allocation may be on a node that is not ready, by their ages.
//
// What is older than the node was never there. What was made after the node fell silent may
// be: a kubelet whose certificate has expired still makes sandboxes, since the plugins have
// their own kubeconfigs.
func (c *Case) mayBeOn(n census.Node) bool {
	known := !c.Created.IsZero() && !c.Created.After(c.now)
	switch {
	case n.Created.IsZero():
		return true
	case known && n.Created.Sub(c.Created) > maxClockSkew, n.Created.Sub(c.since()) > maxClockSkew:
		return false
	}
	neverReady := !n.Lost && n.Since.Sub(n.Created).Abs() <= time.Second
	return !neverReady
}

// storeUnseen holds all of a store that may be that of another cluster.
func storeUnseen(c *Case) (Ruling, bool) {
	n := c.stores[c.Backend].unseen
	if n == 0 {
		return noMatch()
	}
	note := fmt.Sprintf("no pod shows its own address among the %d of the store", n)
	return match(note, Evidence{fromPods, note})
}

// hangs reports whether the pod has been Terminating on a ready node for longer than its kubelet
// needs: the kubelet cannot stop its sandbox. It sets a terminal phase after the runtime has
// stopped the sandbox (SyncTerminatingPod and mergePodStatus of kubelet 1.36), and begins again
// when its node becomes ready.
func (f *Facts) hangs(pod census.Pod) bool {
	node := f.census.Node(pod.Node)
	if pod.Deadline.IsZero() || pod.Finished || !node.Ready {
		return false
	}
	return f.now.Sub(latest(pod.Deadline, node.Since.Add(pod.TerminationGrace))) > endMargin
}

// hung returns the place to remember for an allocation: the last one, or with the boot of
// its node if its pod hangs there, or is a mirror. Only a status counts for an allocation of another
// pod: anyone may write into annotations that a pod has the address.
//
// A pod hangs until its kubelet says that it has ended: on that node, and for a deleted pod, since
// a later one of that name may end too. One on the network of its node is later for sure. The first boot
// counts, because the sandbox is from that one.
// The collector of pods also sets a phase, but only for nodes that are gone or have the taint
// out-of-service.
//
// A mirror is one until a mirror of its name has ended. A kubelet runs one static pod of a name at a
// time. The latest boot counts: a later sandbox may have adopted the allocation.
//
// An allocation that cannot be read is remembered like one in use if the status of its pod has it.
//
// What another pod does never ends or replaces what is remembered of the allocation's own.
func (c *Case) hung(inUse bool) ledger.Place {
	last := c.known.last
	if c.Presence != census.Present {
		if other := c.otherInStatus(); inUse && last.Boot == "" && c.census.HasNode(other.Node) {
			return c.hungOf(other, last)
		}
		return last
	}
	pod := c.Pod
	ended := pod.Finished && !pod.HostNetwork && pod.Node == last.Node && c.is(endedPod) &&
		!c.census.Off(pod.Node) && !c.census.Node(pod.Node).OutOfService // otherwise it was collected
	over := ended && !pod.Deadline.IsZero() || inUse && pod.Deadline.IsZero() && pod.Proves(c.IP)
	if last.Mirror {
		over = ended && pod.Mirror
	}
	if over {
		last = ledger.Place{Node: last.Node}
	}
	if unread := c.Unreadable != "" && pod.Proves(c.IP); !inUse && !unread {
		return last
	}
	return c.hungOf(pod, last)
}

// hungOf returns where the pod hangs or is a mirror; the last place if it does neither.
func (c *Case) hungOf(pod census.Pod, last ledger.Place) ledger.Place {
	mirror := pod.Mirror && !pod.Finished && c.HoldsAddress() && !c.ByRuntime && (last.Boot == "" || last.Mirror)
	if mirror || last.Boot == "" && c.hangs(pod) {
		return ledger.Place{Node: pod.Node, Boot: cmp.Or(c.census.Node(pod.Node).Boot, ledger.UnknownBoot), Mirror: mirror}
	}
	return last
}

// otherInStatus returns the pod whose status keeps the allocation; the zero Pod if there is none.
func (c *Case) otherInStatus() census.Pod {
	for claim := range c.keepingClaims {
		if claim.By.Kind == census.KindPod && claim.Proves && !claim.Ended {
			pod, _ := c.census.Pod(claim.By.Ref)
			return pod
		}
	}
	return census.Pod{}
}

// mayRunOn reports whether the sandbox may still run at a place where it may outlive its pod: until
// the node is gone, fenced, or was rebooted.
func (f *Facts) mayRunOn(last ledger.Place) bool {
	boot := f.census.Node(last.Node).Boot
	rebooted := boot != "" && last.Boot != ledger.UnknownBoot && boot != last.Boot
	return f.policy.Pods.Stuck != policy.Release && last.Boot != "" && !rebooted && !f.census.Off(last.Node)
}

// MayStillRun says why an earlier sandbox of a pod may still run, whose store names a node and which a run
// last saw at a place; nothing if its node is known and has ended it.
func (f *Facts) MayStillRun(named string, last ledger.Place) string {
	if last.Node == "" && !f.census.HasNode(named) {
		return "its node is not known"
	}
	if f.mayRunOn(last) {
		return "it may have outlived its pod on node " + last.Node
	}
	for _, node := range []string{last.Node, named} {
		if node != "" && f.mayStillRunOn(node) {
			return "node " + node + " is not ready, or only since a short time"
		}
	}
	return ""
}

// terminationStuck holds what a hung pod had until its sandbox is surely dead.
func terminationStuck(c *Case) (Ruling, bool) {
	last := c.last()
	if last.Mirror || !c.mayRunOn(last) {
		return noMatch()
	}
	return match("its pod did not end in time on node "+last.Node,
		Evidence{fromLedger, "the pod was Terminating past its deadline on node " + last.Node})
}

// staticPod holds what a static pod had until its sandbox is surely dead. Its kubelet runs it without
// a mirror, too, such as if someone deletes that, and a webhook denies the next one.
//
// A mirror that is back shows its address. If the store proves that this is of a later sandbox, the
// kubelet has ended this one. Only a kubelet writes a status, and only that of a static pod that it
// runs.
func staticPod(c *Case) (Ruling, bool) {
	last := c.last()
	if !last.Mirror || !c.mayRunOn(last) {
		return noMatch()
	}
	if state, _ := c.state(); c.Pod.Mirror && c.Pod.InStatus > 0 && state == otherSandboxed {
		return noMatch()
	}
	return match("its pod was the mirror of a static pod on node "+last.Node,
		Evidence{fromLedger, "the pod was the mirror of a static pod on node " + last.Node})
}

// ended returns when the kubelet has surely ended the sandbox of an allocation whose pod
// is gone, and why that takes longer than usual. It returns the zero time if there is no
// reason to wait, such as if the node is fenced, or the pod that shows the address has ended.
//
// A kubelet gives the containers of a pod that vanished the pod's whole termination
// grace period, even if the pod was force-deleted (kubernetes issues 115819, 120449).
// A kubelet that was cut off learns of the deletion when its node is ready again.
func (c *Case) ended(firstSeen time.Time) (until time.Time, why Evidence) {
	if !c.HoldsAddress() || c.Interrupted || c.ByRuntime || c.is(endedPod) && c.Pod.Shows(c.IP) {
		return time.Time{}, Evidence{}
	}
	grace := c.grace()
	for name := range c.nodesOf() {
		if at, because := c.endedOn(name, grace, firstSeen); at.After(until) {
			until, why = at, because
		}
	}
	return until, why
}

// endedOn is ended for a pod on this node with this grace period; 0 is the default.
func (f *Facts) endedOn(name string, grace time.Duration, firstSeen time.Time) (until time.Time, why Evidence) {
	if f.census.Fenced(name) {
		return time.Time{}, Evidence{}
	}
	if f.census.Off(name) {
		grace = min(grace, mostOfGone)
	}
	if grace > 0 {
		until = firstSeen.Add(grace + endMargin)
		why = Evidence{fromLedger, fmt.Sprintf("the pod may take %v to end", grace)}
	}
	node := f.census.ReadyAgain(name)
	if node.Since.IsZero() || f.now.Sub(node.Since).Abs() > lateNews {
		return until, why
	}
	end := max(grace, defaultTermination) + endMargin
	at := latest(firstSeen, node.Since).Add(end) // the clock of the node may be slow
	if limit := firstSeen.Add(lateNews + end); name == "" && at.After(limit) {
		at = latest(limit, node.Since.Add(defaultTermination+endMargin)) // some node or other is always ready again
	}
	if at.After(until) {
		until = at
		why = Evidence{"node " + node.Name, "it is ready since " + Stamp(node.Since) + ", and its kubelet may still end the pod"}
	}
	return until, why
}

// maxClockSkew is the most that the clocks of nodes and API servers are expected to differ, where
// a rule compares their times.
const maxClockSkew = time.Minute

// leastTolerance is how much a clock may differ from the API server's under any policy. A Date
// has whole seconds, and an answer takes time.
const leastTolerance = 5 * time.Second

// ClockTolerance returns the most that the clock of a run may differ from the API server's: a tenth
// of the shortest wait. The ledger may come from a run on another machine, whose clock may differ
// as much the other way. Then a wait is a fifth shorter than it looks.
func ClockTolerance(p policy.Policy) time.Duration {
	shortest := defaultTermination + endMargin // of the waits that no policy shortens
	waits := []*policy.Duration{p.GracePeriod, p.MinAge}
	for _, rule := range p.Rules {
		waits = append(waits, rule.GracePeriod, rule.MinAge)
	}
	for _, d := range waits {
		if d != nil && d.Duration > 0 {
			shortest = min(shortest, d.Duration)
		}
	}
	return max(shortest/10, leastTolerance)
}

const (
	// defaultTermination is the termination grace period of a pod that names none
	// (DefaultTerminationGracePeriodSeconds in k8s.io/api/core/v1).
	defaultTermination = 30 * time.Second

	// endMargin is what a kubelet gets on top of that, to notice the deletion and to end
	// the sandbox.
	endMargin = time.Minute
)

// lateNews is how long ago, or by its own clock how far ahead, a node may have become ready
// while its kubelet may still be ending pods.
const lateNews = 15 * time.Minute

// mostOfGone is the longest that an allocation waits for the pods of a node that is gone: its
// machine may still be running, and no run can know.
const mostOfGone = time.Hour

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
