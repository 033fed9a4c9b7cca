package judge

// The rows that the table of pods and the table of a node share.
var (
	decodedRules = []Rule{
		{Unreadable, Held, false, unreadable, say(repair),
			"The allocation could not be understood, or has no address."},
		{NotPodOwned, Held, false, notPodOwned, say("nothing: ip-reaper never releases it"),
			"The address is for a tunnel, a load balancer, a virtual machine, Windows, or an unknown type."},
	}

	shownRules = []Rule{
		{PodPresent, InUse, false, ownPodShowsIt, deletePod,
			"The pod that the allocation names shows the address."},
		{AddressInUse, InUse, false, otherPodShowsIt, say(standsIn),
			"A pod that the allocation does not name shows the address, and `evidence.annotations` lets that count."},
		{AddressInUse, InUse, false, machineHasIt, say(standsIn),
			"A virtual machine of KubeVirt reports the address: after a live migration, its guest keeps an address that its pod lost."},
		{PodPresent, InUse, false, sandboxShown, deletePod,
			"The allocation names a sandbox, and a pod shows that sandbox."},
	}

	hiddenRules = []Rule{
		{AddressInUse, InUse, false, mayHaveIt, say(standsIn),
			"A pod or a virtual machine shows more addresses than are read, and the allocation names a pod of its namespace, or no pod; or a virtual machine of KubeVirt does not report all addresses of its guest, and the allocation names a pod of it that is gone."},
	}

	keptRules = []Rule{
		{Protected, Held, true, protectedByStore, say(unprotect),
			"It has no owner, but its address is excluded from its network, or in an IPReservation."},
		{OutOfScope, Held, true, outOfScope, say("edit the policy: {note}"),
			"It has no owner, but the policy's `namespaces` leave its pod out."},
		{RuleHold, Held, true, heldByRule, say("edit the rule of the policy: {note}"),
			"It has no owner, but a rule of the policy holds it."},
		{RestoredLately, Held, true, restoredLately, advise(outwait, Remedy{"or release what was restored", "{run} {only} --release-restored"}),
			"It has no owner, but a restore put it back less than `journal.restoreHold` ago, and no rule of the policy says `restored: release`."},
		{UnknownField, Held, true, unknownField, say("use a version of ip-reaper that knows the field: {note}"),
			"It has no owner, but it has a field that this program does not know, and that may say that the address is in use."},
		{NoToken, Held, true, noToken, say(repair),
			"It has no owner, but it has no token by which its store could notice that it changed hands."},
		{TooYoung, Held, true, tooYoung, growOlder,
			"It has no owner, but it is younger than `minAge`."},
	}
)
