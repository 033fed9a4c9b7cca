package judge

import (
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
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
		{SandboxPresent, InUse, false, sandboxPresent, endSandbox,
			"The container runtime has the sandbox that the allocation names, in whatever state."},
		{AddressInUse, InUse, false, claimedBy(census.KindSandbox), say(standsIn),
			"libcni's cache has the address for another sandbox that the container runtime has, and that sandbox has no lease of it in another folder."},
	}, shownRules, hiddenRules, []Rule{
		{Protected, Held, true, mayBeAttached, say("delete the pod of that sandbox, so that it gets a new one: {note}"),
			"libcni's cache has an entry of another sandbox that the container runtime has, and it cannot be decoded; and that sandbox has no lease for that interface in this folder."},
	}, keptRules(say("it is kept while this is so: {note}"), say(newer)), []Rule{
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

// stopped is the note of an allocation whose sandbox the runtime has, and says that it is not ready.
const stopped = "its sandbox is not ready"

func sandboxPresent(c *Case) (Ruling, bool) {
	sandbox := c.census.Sandbox(c.Owner.Sandbox)
	switch has := "it has the sandbox " + c.Owner.Sandbox; {
	case c.Blank || sandbox.ID == "":
		return noMatch()
	case sandbox.Ready:
		return match("", Evidence{fromRuntime, has})
	default:
		return match(stopped, Evidence{fromRuntime, has + ", which is not ready"})
	}
}

// mayBeAttached matches if a sandbox may have the address by an entry that cannot be decoded. Where
// the sandbox has an address of the same family for the interface of the entry, that is the one.
func mayBeAttached(c *Case) (Ruling, bool) {
	a := c.vague[pooled{c.Backend, c.Pool, c.IP.Is4()}]
	if a == nil {
		return noMatch()
	}
	note := "sandbox " + a.Sandbox + " may have the address: its entry " + a.File + " cannot be decoded: " + a.Unreadable
	return match(note, Evidence{census.SandboxCache, note})
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
	evidence := []Evidence{{fromRuntime, "it does not have the sandbox " + c.Owner.Sandbox}}
	if c.UntilBoot {
		evidence = append(evidence, Evidence{fromLedger, "a run saw the allocation before the node was booted"})
	}
	return c.ripen(least, "", evidence...)
}

// rebooted reports whether a run saw the very allocation in an earlier boot of the node. What ran in its
// sandbox then does not run any more.
func (c *Case) rebooted() bool {
	seen, now := c.last().Boot, c.census.Boot()
	return seen != "" && seen != ledger.UnknownBoot && now != "" && seen != now
}

// inBoot adds to the last place the boot of the node, if a run that finds another one may release the
// allocation. The first boot counts, because something may run since then.
func (c *Case) inBoot(last ledger.Place) ledger.Place {
	if c.UntilBoot && last.Boot == "" {
		last.Boot = c.census.Boot()
	}
	return last
}
