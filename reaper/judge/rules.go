package judge

import (
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

// Rules returns the table for allocations that pods decide about, in the order in which
// its rules are asked.
//
// A rule may rely on all rules before it. After the second rule of NoCensus, it is
// known whether the named pod exists. After the last rule that gives InUse, no allocation
// has an owner in this cluster. After NodeForeign, every one is ownerless. The next rules
// keep it nevertheless. The last rules give it up at the end of its grace period.
func Rules() []Rule {
	return slices.Concat(decodedRules, []Rule{
		{OwnerUnknown, Held, false, namesNoOwner, say(byHand),
			"The allocation names neither a pod nor a sandbox."},
		{NoCensus, Held, false, noCensus, listPods,
			"The pods could not be listed, or they were listed before the allocation was."},
	}, shownRules, []Rule{
		{AddressInUse, InUse, false, claimedBy(census.KindNode, census.KindStoreNode), say(standsIn),
			"A node, or Calico's own node, shows the address as that of a tunnel; only for allocations of Calico."},
		{NoCensus, Held, false, podNotRead, advise(Remedy{"let ip-reaper read the pod", "kubectl auth can-i get pods -A"}),
			"The pod that the allocation names could not be read."},
		{Retained, Held, true, ordinalWanted, say("wait for the pod, which gets the address back; or scale down the StatefulSet, or set protection.statefulSets to ignore: {evidence}"),
			"The pod does not exist, its StatefulSet wants a pod with that ordinal, and that pod can adopt the allocation. No pod can adopt one of Calico, of Whereabouts before 0.8, or of the slice of a node that is gone; but a reservation, if another node has that slice now."},
		{OwnerUnknown, Held, false, unnamed, lookForIt,
			"The allocation names only a sandbox, or a pod derived from a handle; and `pods.unnamed` is `hold`, or some pod may have an address that it does not show, or a store could not be read whole."},
		{PodFinished, Held, false, finishedHeld,
			advise(Remedy{"delete the finished pod", ""}, Remedy{"or set pods.finished to release in the policy", ""}),
			"The pod has succeeded or failed, and `pods.finished` is `hold`."},
		{SandboxReplaced, Held, false, sandboxHeld, say("set pods.superseded to release in the policy"),
			"The store proves that a later sandbox of the pod has another address, and `pods.superseded` is `hold`."},
		{PodPresent, InUse, false, podPresent, keepUnshown,
			"The pod that the allocation names exists. If it hides no address, the note says what it shows in place of this one."},
	}, hiddenRules, []Rule{
		{NodeForeign, Held, false, nodeForeign, leave,
			"The store has a node for it that is none of this cluster, or its node is unknown and the store has such nodes; and `nodes.foreign` is `hold`: another cluster may have it."},
		{NodeUnreachable, Held, true, nodeUnreachable, fence,
			"Its node (or the node that it may be under another name) exists, is not ready, and is not fenced by the taint `node.kubernetes.io/out-of-service`: its sandbox may still be running."},
		{NodeUnreachable, Held, true, nodeUnknown, fence,
			"Its node is unknown, and may be one that is not ready and not tainted; and `nodes.unknown` is `hold`."},
		{TerminationStuck, Held, true, terminationStuck, advise(
			lookThere,
			Remedy{"if it does, remove it there with crictl stopp and crictl rmp, or reboot the node, which ends the hold", ""},
			unstick),
			"Its pod hung in Terminating on a ready node that has not been rebooted since, and `pods.stuck` is `hold`: its sandbox may still be running."},
		{StaticPod, Held, true, staticPod, advise(
			lookThere,
			Remedy{"if it does, find out what keeps its kubelet from making the mirror again, such as a webhook, a quota or Pod Security", ""},
			Remedy{"if it does not, reboot the node, which ends the hold", ""},
			unstick),
			"Its pod was the mirror of a static pod, on a node that has not been rebooted since, and `pods.stuck` is `hold`: its kubelet may run the pod without the mirror."},
		{StoreUnseen, Held, true, storeUnseen, say("check that it is the store of this cluster: if it is, the hold ends as soon as one of its pods shows its address; to release all the same, raise limits.minEntries for one run, below which maxFraction and maxPodDrop do not apply either"),
			"Its store is outside the API server (Calico in etcd) and has at least `limits.minEntries` addresses, and no pod shows an address that the store has for it: it may be the store of another cluster."},
	}, keptRules(unprotect, advise(Remedy{newer, ""}, Remedy{"or, once you know that the field does not say that the address is in use, set backends.whereabouts.unknownFields to ignore in the policy", ""})), []Rule{
		{PodFinished, Orphaned, true, when(endedPod), wait,
			"The pod has succeeded or failed, and `pods.finished` is `release`."},
		{PodReplaced, Orphaned, true, when(replacedPod), wait,
			"A pod of that name exists with a different UID."},
		{PodMoved, Orphaned, true, podMoved, wait,
			"The store names a node, and the pod of that name is on another one: the allocation belongs to an earlier pod."},
		{PodReplaced, Orphaned, true, podAgain, wait,
			"A pod of that name exists, shows no address yet, and was created, and taken on by its kubelet, more than 4 minutes after the allocation, which no later sandbox can adopt (Calico): the allocation belongs to an earlier pod."},
		{PodReplaced, Orphaned, true, podOnHost, wait,
			"A pod of that name exists, and is on the network of its node, which is none of Windows, so that no plugin was ever asked for it; it is not the mirror of a static pod, nor named like one: the allocation belongs to an earlier pod."},
		{SandboxReplaced, Orphaned, true, sandboxReplaced, wait,
			"The store proves that a later sandbox of the pod has another address, and `pods.superseded` is `release`."},
		{EmptyHandle, Orphaned, true, emptyHandle, wait,
			"The handle holds no address, and no pod shows its sandbox."},
		{SandboxAbsent, Orphaned, true, sandboxAbsent, wait,
			"The allocation names only a sandbox, no pod shows that sandbox or the address, and `pods.unnamed` is `release`."},
		{PodAbsent, Orphaned, true, podAbsent, wait,
			"The pod does not exist."},
	})
}

// The rows that the table of pods and the table of a node share.
var (
	decodedRules = []Rule{
		{Unreadable, Held, false, unreadable, say(repair),
			"The allocation cannot be read, or has no address."},
		{NotPodOwned, Held, false, notPodOwned, leaveTunnel,
			"The address belongs to a tunnel, a load balancer, a virtual machine, Windows, or an owner of unknown type."},
	}

	shownRules = []Rule{
		{PodPresent, InUse, false, ownPodShowsIt, say("it is kept while its pod shows it; " + inherits),
			"The pod that the allocation names shows the address."},
		{AddressInUse, InUse, false, claimedBy(census.KindPod), say(standsIn),
			"A pod that the allocation does not name shows the address, and `evidence.annotations` accepts that."},
		{AddressInUse, InUse, false, claimedBy(census.KindMachine), say(standsIn),
			"A KubeVirt virtual machine reports the address: after a live migration, the guest keeps an address that its pod lost."},
		{PodPresent, InUse, false, sandboxShown, say("it is kept while {note}; " + inherits),
			"The allocation names a sandbox, and a pod shows that sandbox."},
	}

	hiddenRules = []Rule{
		{AddressInUse, InUse, false, mayHaveIt, say("it may be in use: {note}"),
			"A pod or a virtual machine shows more addresses than are read, and the allocation names a pod of its namespace, or no pod; or a KubeVirt virtual machine does not report all addresses of its guest, and the allocation names a pod of that machine that is gone."},
	}
)

// keptRules are shared, too. What the stores of a node protect, no object protects.
func keptRules(protected, unknown func(Subject) []Remedy) []Rule {
	return []Rule{
		{BeingDeleted, Held, true, beingDeleted, say("find out what should remove its finalizers: {note}"),
			"The allocation is being deleted, and finalizers keep it until others remove them."},
		{Protected, Held, true, protectedByStore, protected,
			"Its store says what keeps the address, such as an IPAMClaim; or files lack a list of what may keep it."},
		{OutOfScope, Held, true, outOfScope, say("edit {policy}: {note}"),
			"The policy's `namespaces` leave out its pod."},
		{RuleHold, Held, true, heldByRule, dropRule,
			"A rule of the policy holds it."},
		{RestoredLately, Held, true, restoredLately, advise(Remedy{"wait: {note}", ""}, Remedy{"or release it once its grace period is over ({evidence})", "{run} {only} --release-restored --wait --dry-run=false"}),
			"A restore put it back less than `journal.restoreHold` ago, and no rule of the policy says `restored: release`."},
		{UnknownField, Held, true, unknownField, unknown,
			"The allocation has a field that this version of ip-reaper does not know, which may mean that the address is in use."},
		{NoToken, Held, true, noToken, say(repair),
			"The allocation has no token by which its store would notice that it changed hands."},
		{TooYoung, Held, true, tooYoung, wait,
			"The allocation is younger than `minAge`."},
	}
}

// A Rule is one row of a table from which decisions come. The first rule that matches an
// allocation decides. Each row has all fields, so that none is forgotten.
type Rule struct {
	Reason Reason

	// Gives is the verdict. A rule that gives Orphaned gives Suspected as long as the
	// grace period lasts.
	Gives Verdict

	// Ownerless is set if the allocation has no owner, whether it is kept or not.
	Ownerless bool

	// Match reports whether the rule matches, and returns the Note and the Evidence
	// of the ruling. If time decides, it also returns the verdict and its times.
	// It is pure.
	Match func(*Case) (Ruling, bool)

	remedies func(Subject) []Remedy // what would change the decision

	Doc string // one sentence, for docs/verdicts.md
}

// keepsTime reports whether the ledger keeps the time since which the allocation has been
// ownerless, if it has one. Under these rules the allocation is ownerless, and only the
// policy or the run keeps it.
//
// While a node is unreachable, could not end the pod, or may run it without its mirror, the sandbox
// may be running, so the grace period begins again when that is over. While the store may be
// that of another cluster, the list of pods says nothing about it.
//
// While a restore holds it, a run that ends the hold may count: see Case.since.
func (r *Rule) keepsTime() bool {
	switch r.Reason {
	case NodeUnreachable, TerminationStuck, StaticPod, StoreUnseen:
		return false
	case PodFinished, SandboxReplaced:
		return true
	default:
		return r.Ownerless
	}
}

// match returns the decision of a rule that matches, with a note for people.
func match(note string, evidence ...Evidence) (Ruling, bool) {
	return Ruling{Note: note, Evidence: evidence}, true
}

// storeSays returns the decision of a rule that matches if the store says something, which is also
// the note.
func storeSays(text string) (Ruling, bool) {
	if text == "" {
		return noMatch()
	}
	return match(text, Evidence{fromStore, text})
}

// noMatch leaves the allocation to the next rule.
func noMatch() (Ruling, bool) { return Ruling{}, false }
