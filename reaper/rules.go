package reaper

// A Rule is one row of the table from which decisions come. The first rule that
// matches an allocation decides.
type Rule struct {
	Reason Reason

	// Gives is the verdict. A rule that gives Orphaned gives Suspected as long as the
	// grace period lasts.
	Gives Verdict

	// Ownerless is set if the allocation has no owner, whether it is kept or not.
	Ownerless bool

	Doc string // one sentence, for docs/verdicts.md

	// Match reports whether the rule matches, and returns the Note and the Evidence
	// of the ruling. If time decides, it also returns the verdict and its times.
	// It is pure.
	Match func(f *Facts, a *Allocation) (Ruling, bool)
}

// Rules returns the table, in the order in which its rules are asked.
//
// A rule may rely on all rules before it. After the second rule of NoCensus, it is
// known whether the named pod exists. After the last rule that gives InUse, every
// allocation is ownerless. The next rules keep an ownerless allocation although it has
// no owner. The last rules give it up at the end of its grace period.
func Rules() []Rule {
	return []Rule{
		{Unreadable, Held, false,
			"The allocation could not be understood, or has no address.", unreadable},
		{NotPodOwned, Held, false,
			"The address is for a tunnel, a load balancer, a virtual machine, Windows, or an unknown type.", notPodOwned},
		{OwnerUnknown, Held, false,
			"The allocation names neither a pod nor a sandbox.", namesNoOwner},
		{NoCensus, Held, false,
			"The pods could not be listed, or on a node the sandboxes, or they were listed before the allocation was.", noCensus},
		{SandboxPresent, InUse, false,
			"On a node: the container runtime has the sandbox that the allocation names, in any state.", sandboxPresent},
		{PodPresent, InUse, false,
			"The pod that the allocation names shows the address.", ownPodShowsIt},
		{AddressInUse, InUse, false,
			"A pod that the allocation does not name shows the address, and `evidence.annotations` lets that count.", otherPodShowsIt},
		{AddressInUse, InUse, false,
			"A virtual machine of KubeVirt reports the address: after a live migration, its guest keeps an address that its pod lost.", machineHasIt},
		{PodPresent, InUse, false,
			"The allocation names a sandbox, and a pod shows that sandbox.", sandboxShown},
		{NoCensus, Held, false,
			"The pod that the allocation names could not be read.", ofPods(podNotRead)},
		{Retained, Held, true,
			"The pod does not exist, its StatefulSet wants a pod of that ordinal, and that pod can adopt the allocation: not one of Calico, nor of Whereabouts before 0.8.", ofPods(ordinalWanted)},
		{OwnerUnknown, Held, false,
			"The allocation names only a sandbox, or a pod that was derived from a handle; and `pods.unnamed` is `hold`, or some pod may have an address that it does not show.", ofPods(unnamed)},
		{PodFinished, Held, false,
			"The pod has succeeded or failed, and `pods.finished` is `hold`.", ofPods(finishedHeld)},
		{SandboxReplaced, Held, false,
			"The store proves that a later sandbox of the pod has another address, and `pods.superseded` is `hold`.", ofPods(sandboxHeld)},
		{PodPresent, InUse, false,
			"The pod that the allocation names exists.", ofPods(podPresent)},
		{AddressInUse, InUse, false,
			"A pod or a virtual machine shows more addresses than are read, and the allocation names a pod of its namespace, or no pod; or a virtual machine of KubeVirt does not report all addresses of its guest, and the allocation names a pod of it that is gone.", mayHaveIt},

		{NodeUnreachable, Held, true,
			"It has no owner, but its node exists, is not ready, and is not tainted `node.kubernetes.io/out-of-service`: its sandbox may still be running.", ofPods(nodeUnreachable)},
		{NodeUnreachable, Held, true,
			"It has no owner, its node is not known, it may be on some node that is not ready and not tainted, and `nodes.unknown` is `hold`.", ofPods(nodeUnknown)},
		{TerminationStuck, Held, true,
			"It has no owner, but its pod hung in Terminating on a ready node that has not been started anew since, and `pods.stuck` is `hold`: its sandbox may still be running.", ofPods(terminationStuck)},
		{Protected, Held, true,
			"It has no owner, but its address is excluded from its network, or in an IPReservation.", protectedByStore},
		{OutOfScope, Held, true,
			"It has no owner, but the policy's `namespaces` leave its pod out.", outOfScope},
		{RuleHold, Held, true,
			"It has no owner, but a rule of the policy holds it.", heldByRule},
		{RestoredLately, Held, true,
			"It has no owner, but a restore put it back less than `journal.restoreHold` ago, and no rule of the policy says `restored: release`.", restoredLately},
		{UnknownField, Held, true,
			"It has no owner, but it has a field that this program does not know, and that may say that the address is in use.", unknownField},
		{NoToken, Held, true,
			"It has no owner, but it has no token by which its store could notice that it changed hands.", noToken},
		{TooYoung, Held, true,
			"It has no owner, but it is younger than `minAge`.", tooYoung},

		{PodFinished, Orphaned, true,
			"The pod has succeeded or failed, and `pods.finished` is `release`.", ofPods(when((*Facts).finished))},
		{PodReplaced, Orphaned, true,
			"A pod of that name exists, with another UID.", ofPods(when((*Facts).otherPod))},
		{PodMoved, Orphaned, true,
			"The store names a node, and the pod of that name is on another one: the allocation is of an earlier pod.", ofPods(podMoved)},
		{PodReplaced, Orphaned, true,
			"A pod of that name exists that shows no address yet, and is younger than the allocation by more than 4 minutes, which no later sandbox can adopt (Calico): the allocation is of an earlier pod.", ofPods(podAgain)},
		{SandboxReplaced, Orphaned, true,
			"The store proves that a later sandbox of the pod has another address, and `pods.superseded` is `release`.", ofPods(sandboxReplaced)},
		{EmptyHandle, Orphaned, true,
			"The handle holds no address, and no pod shows its sandbox.", emptyHandle},
		{SandboxAbsent, Orphaned, true,
			"The allocation names only a sandbox, no pod shows that sandbox or the address, and `pods.unnamed` is `release`.", ofPods(sandboxAbsent)},
		{SandboxAbsent, Orphaned, true,
			"On a node: the container runtime does not have the sandbox that the allocation names, or an ADD broke off before it named one.", sandboxGone},
		{PodAbsent, Orphaned, true,
			"The pod does not exist.", ofPods(podAbsent)},
	}
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
