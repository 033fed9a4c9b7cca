package reaper

import "slices"

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
	Match func(f *Facts, a *Allocation) (Ruling, bool)

	remedies func(Subject) []Remedy // what would change the decision

	Doc string // one sentence, for docs/verdicts.md
}

// Rules returns the table for allocations about which pods decide, in the order in which
// its rules are asked.
//
// A rule may rely on all rules before it. After the second rule of NoCensus, it is
// known whether the named pod exists. After the last rule that gives InUse, every
// allocation is ownerless. The next rules keep an ownerless allocation although it has
// no owner. The last rules give it up at the end of its grace period.
func Rules() []Rule {
	return slices.Concat(decodedRules, []Rule{
		{OwnerUnknown, Held, false, namesNoOwner, say(examine),
			"The allocation names neither a pod nor a sandbox."},
		{NoCensus, Held, false, noCensus, listPods,
			"The pods could not be listed, or they were listed before the allocation was."},
	}, shownRules, []Rule{
		{NoCensus, Held, false, podNotRead, listPods,
			"The pod that the allocation names could not be read."},
		{Retained, Held, true, ordinalWanted, say("scale down the StatefulSet, or set protection.statefulSets to ignore: {evidence}"),
			"The pod does not exist, its StatefulSet wants a pod of that ordinal, and that pod can adopt the allocation: not one of Calico, nor of Whereabouts before 0.8."},
		{OwnerUnknown, Held, false, unnamed, say(examine),
			"The allocation names only a sandbox, or a pod that was derived from a handle; and `pods.unnamed` is `hold`, or some pod may have an address that it does not show."},
		{PodFinished, Held, false, finishedHeld,
			advise(Remedy{"delete the object of the pod, which has ended", "kubectl delete pod -n {namespace} {pod}"}, Remedy{"or set pods.finished to release in the policy", ""}),
			"The pod has succeeded or failed, and `pods.finished` is `hold`."},
		{SandboxReplaced, Held, false, sandboxHeld, say("set pods.superseded to release in the policy"),
			"The store proves that a later sandbox of the pod has another address, and `pods.superseded` is `hold`."},
		{PodPresent, InUse, false, podPresent, deletePod,
			"The pod that the allocation names exists."},
	}, hiddenRules, []Rule{
		{NodeUnreachable, Held, true, nodeUnreachable, fence,
			"It has no owner, but its node exists, is not ready, and is not tainted `node.kubernetes.io/out-of-service`: its sandbox may still be running."},
		{NodeUnreachable, Held, true, nodeUnknown, fence,
			"It has no owner, its node is not known, it may be on some node that is not ready and not tainted, and `nodes.unknown` is `hold`."},
		{TerminationStuck, Held, true, terminationStuck, advise(
			Remedy{"look on that node whether its sandbox still runs", "crictl pods --namespace {namespace} --name {pod}"},
			Remedy{"if it does, remove it there with crictl stopp and crictl rmp, or start the node anew, which ends the hold", ""},
			Remedy{"or set pods.stuck to release in the policy, once no sandbox of such a pod runs", ""}),
			"It has no owner, but its pod hung in Terminating on a ready node that has not been started anew since, and `pods.stuck` is `hold`: its sandbox may still be running."},
	}, keptRules, []Rule{
		{PodFinished, Orphaned, true, when(endedPod), wait,
			"The pod has succeeded or failed, and `pods.finished` is `release`."},
		{PodReplaced, Orphaned, true, when(replacedPod), wait,
			"A pod of that name exists, with another UID."},
		{PodMoved, Orphaned, true, podMoved, wait,
			"The store names a node, and the pod of that name is on another one: the allocation is of an earlier pod."},
		{PodReplaced, Orphaned, true, podAgain, wait,
			"A pod of that name exists that shows no address yet, and is younger than the allocation by more than 4 minutes, which no later sandbox can adopt (Calico): the allocation is of an earlier pod."},
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

// keepsTime reports whether the ledger keeps the time since which the allocation has been
// ownerless, if it has one. By these rules the allocation is ownerless, and only the
// policy or the run keeps it.
//
// While a node is unreachable or could not end the pod, the sandbox may be running, so the
// grace period begins again when that is over. A restore is an operator's word that the pod may be
// alive.
func (r *Rule) keepsTime() bool {
	switch r.Reason {
	case NodeUnreachable, TerminationStuck, RestoredLately:
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

// noMatch leaves the allocation to the next rule.
func noMatch() (Ruling, bool) { return Ruling{}, false }
