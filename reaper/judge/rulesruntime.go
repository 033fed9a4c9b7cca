package judge

import (
	"slices"
	"time"
)

// NodeRules returns the table for allocations on a node, in the order in which its rules are
// asked. The container runtime decides about them: it knows its sandboxes better than the
// state of pods shows them. A pod that shows the address can only keep it.
func NodeRules() []Rule {
	return slices.Concat(decodedRules, []Rule{
		{OwnerUnknown, Held, false, namesNoSandbox, say(byHand),
			"The allocation names no sandbox."},
		{NoCensus, Held, false, noSandboxList, listSandboxes,
			"The sandboxes of the node, or the pods, could not be listed, or they were listed before the allocation was."},
		{SandboxPresent, InUse, false, sandboxPresent, advise(Remedy{"it is in use until the kubelet removes its sandbox", "crictl inspectp {sandbox}"}),
			"The container runtime has the sandbox that the allocation names, in whatever state."},
	}, shownRules, hiddenRules, keptRules(say("it is kept while this is so: {note}"), say(newer)), []Rule{
		{SandboxAbsent, Orphaned, true, sandboxGone, wait,
			"The container runtime does not have the sandbox that the allocation names, or an ADD broke off before naming one."},
	})
}

func namesNoSandbox(c *Case) (Ruling, bool) {
	if c.Owner.Sandbox != "" || c.Blank {
		return noMatch()
	}
	return storeSays("it names no sandbox")
}

func noSandboxList(c *Case) (Ruling, bool) {
	if c.census.Began().IsZero() || c.census.OnNode() {
		return noCensus(c)
	}
	return match("", Evidence{fromRuntime, "none was read after the allocations"})
}

func sandboxPresent(c *Case) (Ruling, bool) {
	if c.Blank || !c.census.HasSandbox(c.Owner.Sandbox) {
		return noMatch()
	}
	return match("", Evidence{fromRuntime, "it has the sandbox " + c.Owner.Sandbox})
}

// sandboxGone treats an allocation without a time as made when a run first saw it. A blank one
// leaked as soon as its ADD broke off, and waits until it is older than an ADD can take.
func sandboxGone(c *Case) (Ruling, bool) {
	var least time.Duration
	switch {
	case c.Created.IsZero():
		least = c.minAge()
	case c.Blank && !c.Created.After(c.now):
		least = c.Created.Add(c.minAge()).Sub(c.since())
	}
	if c.Blank {
		const says = "an ADD broke off before writing an owner"
		return c.ripen(least, says, Evidence{fromStore, says})
	}
	return c.ripen(least, "", Evidence{fromRuntime, "it does not have the sandbox " + c.Owner.Sandbox})
}
