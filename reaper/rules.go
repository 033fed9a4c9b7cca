package reaper

import (
	"fmt"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

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
			"The pods could not be listed, or were listed before the allocation was.", noCensus},
		{PodPresent, InUse, false,
			"The pod that the allocation names shows the address.", ownPodShowsIt},
		{AddressInUse, InUse, false,
			"A pod that the allocation does not name shows the address, and `evidence.annotations` lets that count.", otherPodShowsIt},
		{AddressInUse, InUse, false,
			"A virtual machine of KubeVirt reports the address: after a live migration, its guest keeps an address that its pod lost.", machineHasIt},
		{PodPresent, InUse, false,
			"The allocation names a sandbox, and a pod shows that sandbox.", sandboxShown},
		{NoCensus, Held, false,
			"The pod that the allocation names could not be read.", podNotRead},
		{Retained, Held, true,
			"The pod does not exist, its StatefulSet wants a pod of that ordinal, and that pod can adopt the allocation: not one of Calico, nor of Whereabouts before 0.8.", ordinalWanted},
		{OwnerUnknown, Held, false,
			"The allocation names only a sandbox, or a pod that was derived from a handle; and `pods.unnamed` is `hold`, or some pod may have an address that it does not show.", unnamed},
		{PodFinished, Held, false,
			"The pod has succeeded or failed, and `pods.finished` is `hold`.", finishedHeld},
		{SandboxReplaced, Held, false,
			"The store proves that a later sandbox of the pod has another address, and `pods.superseded` is `hold`.", sandboxHeld},
		{PodPresent, InUse, false,
			"The pod that the allocation names exists.", podPresent},
		{AddressInUse, InUse, false,
			"A pod or a virtual machine shows more addresses than are read, and the allocation names a pod of its namespace, or no pod.", tooMuch},

		{NodeUnreachable, Held, true,
			"It has no owner, but its node exists, is not ready, and is not tainted `node.kubernetes.io/out-of-service`: its sandbox may still be running.", nodeUnreachable},
		{NodeUnreachable, Held, true,
			"It has no owner, its node is not known, it may be older than the time since which some untainted node is not ready, and `nodes.unknown` is `hold`.", nodeUnknown},
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
			"The pod has succeeded or failed, and `pods.finished` is `release`.", when((*Facts).finished)},
		{PodReplaced, Orphaned, true,
			"A pod of that name exists, with another UID.", when((*Facts).otherPod)},
		{PodMoved, Orphaned, true,
			"The store names a node, and the pod of that name is on another one: the allocation is of an earlier pod.", podMoved},
		{SandboxReplaced, Orphaned, true,
			"The store proves that a later sandbox of the pod has another address, and `pods.superseded` is `release`.", sandboxReplaced},
		{EmptyHandle, Orphaned, true,
			"The handle holds no address, and no pod shows its sandbox.", emptyHandle},
		{SandboxAbsent, Orphaned, true,
			"The allocation names only a sandbox, no pod shows that sandbox or the address, and `pods.unnamed` is `release`.", sandboxAbsent},
		{PodAbsent, Orphaned, true,
			"The pod does not exist.", podAbsent},
	}
}

// keepsTime reports whether the ledger keeps the time since which the allocation has been
// ownerless, if it has one. By these rules the allocation is ownerless, and only the
// policy or the run keeps it.
//
// While a node is unreachable, the sandbox may be running, so the grace period begins
// again when its kubelet can end it. A restore is an operator's word that the pod may be
// alive.
func (r *Rule) keepsTime() bool {
	switch r.Reason {
	case NodeUnreachable, RestoredLately:
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

func unreadable(_ *Facts, a *Allocation) (Ruling, bool) {
	switch {
	case a.Unreadable != "":
		return match(a.Unreadable, Evidence{fromStore, a.Unreadable})
	case a.Foreign == "" && a.holdsAddress() && !a.IP.IsValid():
		return match("the allocation has no address", Evidence{fromStore, "the allocation has no address"})
	}
	return noMatch()
}

func notPodOwned(_ *Facts, a *Allocation) (Ruling, bool) {
	if a.Foreign == "" {
		return noMatch()
	}
	return match(a.Foreign, Evidence{fromStore, a.Foreign})
}

func namesNoOwner(_ *Facts, a *Allocation) (Ruling, bool) {
	if !a.holdsAddress() || a.namesPod() || a.Owner.Pod == (PodRef{}) && a.Owner.Sandbox != "" {
		return noMatch()
	}
	return match("it names no pod", Evidence{fromStore, "it names no pod"})
}

func noCensus(f *Facts, _ *Allocation) (Ruling, bool) {
	if !f.census.began.IsZero() {
		return noMatch()
	}
	return match("", Evidence{fromPods, "no list was read after the allocations"})
}

func ownPodShowsIt(f *Facts, a *Allocation) (Ruling, bool) {
	if !a.holdsAddress() || !a.namesPod() {
		return noMatch()
	}
	pod, ok := f.ownWitness(a)
	if !ok {
		return noMatch()
	}
	return match("", Evidence{pod.source(a.IP), "the pod shows the address"})
}

func otherPodShowsIt(f *Facts, a *Allocation) (Ruling, bool) {
	if a.Protects != nil {
		return protectedInUse(f, a)
	}
	if !a.holdsAddress() {
		return noMatch()
	}
	pod, ok := f.otherWitness(a)
	if !ok {
		return noMatch()
	}
	return match("shown by pod "+pod.Ref.String(), Evidence{pod.source(a.IP), "pod " + pod.Ref.String() + " shows the address"})
}

func machineHasIt(f *Facts, a *Allocation) (Ruling, bool) {
	if !a.holdsAddress() {
		return noMatch()
	}
	m, ok := f.census.machines[a.IP]
	if !ok {
		return noMatch()
	}
	name := "virtual machine " + m.Namespace + "/" + m.Name
	return match("reported by "+name, Evidence{name, "its guest reports the address"})
}

// protectedInUse matches if a pod that is believed shows one of the addresses that the
// allocation protects.
func protectedInUse(f *Facts, a *Allocation) (Ruling, bool) {
	for _, ip := range a.Protects.IPs {
		for pod := range f.census.showing(ip) {
			if !f.believes(a, pod, ip) {
				continue
			}
			says := "pod " + pod.Ref.String() + " shows " + ip.String()
			return match(ip.String()+" is shown by pod "+pod.Ref.String(), Evidence{pod.source(ip), says})
		}
	}
	return noMatch()
}

func sandboxShown(f *Facts, a *Allocation) (Ruling, bool) {
	if _, shown := f.sandboxClaimant(a); !shown || f.unclaimed {
		return noMatch()
	}
	return match("a pod shows its sandbox", Evidence{fromCalico, "a pod shows the sandbox " + a.Owner.Sandbox})
}

// sandboxClaimant returns a pod that shows the sandbox of an allocation without a name or
// without an address. Only an annotation shows a sandbox.
func (f *Facts) sandboxClaimant(a *Allocation) (PodRef, bool) {
	byName := a.namesPod() && !a.EmptyHandle
	ref, shown := f.census.showsSandbox(a.Owner.Sandbox)
	return ref, shown && !byName && a.Protects == nil
}

func podNotRead(f *Facts, a *Allocation) (Ruling, bool) {
	_, presence := f.census.pod(a.Owner.Pod)
	namesNone := a.Owner.Pod == PodRef{} && !a.EmptyHandle
	if presence != Unknown || namesNone {
		return noMatch()
	}
	return match("", Evidence{fromPods, "the pod could not be read"})
}

func ordinalWanted(f *Facts, a *Allocation) (Ruling, bool) {
	if a.EmptyHandle || a.NeverAdopted || f.policy.Protection.StatefulSets == policy.Ignore {
		return noMatch()
	}
	set, wanted := f.census.wants(a.Owner.Pod)
	if _, presence := f.census.pod(a.Owner.Pod); !wanted || presence != Absent {
		return noMatch()
	}
	return match("its StatefulSet brings the pod back", set.evidence())
}

func unnamed(f *Facts, a *Allocation) (Ruling, bool) {
	_, presence := f.census.pod(a.Owner.Pod)
	hiding := f.hiding() > 0 // such a pod may have this address
	held := f.policy.Pods.Unnamed != policy.Release
	switch {
	case a.Protects != nil && len(a.Protects.IPs) == 0 && a.Owner.Pod == PodRef{}:
		return match("it names neither an address nor a pod", Evidence{fromStore, "it names neither an address nor a pod"})
	case a.EmptyHandle && presence == Absent && !a.namesPod() && (a.Owner.Sandbox == "" || a.Owner.Pod != PodRef{}):
		return match("it names neither a pod nor a sandbox", Evidence{fromStore, "it names neither a pod nor a sandbox"})
	case !a.holdsAddress():
		return noMatch()
	case !a.namesPod() && held:
		return match("it names a sandbox only", Evidence{fromStore, "it names a sandbox only"}, Evidence{fromPolicy, "pods.unnamed is hold"})
	case !a.namesPod() && hiding:
		return match("it names a sandbox only, and not every pod shows its addresses",
			Evidence{fromStore, "it names a sandbox only"}, f.census.hidingEvidence())
	case a.Inferred && presence == Absent && (held || hiding):
		evidence := Evidence{fromPolicy, "pods.unnamed is hold"}
		if !held {
			evidence = f.census.hidingEvidence()
		}
		return match("its handle does not say that it belongs to a pod", Evidence{fromStore, "its handle does not say that it belongs to a pod"}, evidence)
	}
	return noMatch()
}

func finishedHeld(f *Facts, a *Allocation) (Ruling, bool) {
	if f.policy.Pods.Finished == policy.Release || !f.finished(a) {
		return noMatch()
	}
	return match("", Evidence{fromPodStatus, "the pod has ended"}, Evidence{fromPolicy, "pods.finished is hold"})
}

func sandboxHeld(f *Facts, a *Allocation) (Ruling, bool) {
	if f.policy.Pods.Superseded == policy.Release || !f.otherSandbox(a) {
		return noMatch()
	}
	note, evidence := f.otherAddress(a)
	return match(note, evidence, Evidence{fromPolicy, "pods.superseded is hold"})
}

func podPresent(f *Facts, a *Allocation) (Ruling, bool) {
	if !f.stillThere(a) {
		return noMatch()
	}
	return match("", Evidence{fromPods, "the pod exists"})
}

func protectedByStore(_ *Facts, a *Allocation) (Ruling, bool) {
	if a.Protected == "" || a.Interrupted {
		return noMatch()
	}
	return match(a.Protected, Evidence{fromStore, a.Protected})
}

func outOfScope(f *Facts, a *Allocation) (Ruling, bool) {
	if f.terms(a).InScope {
		return noMatch()
	}
	why := f.policy.Outside(a.Owner.Pod.Namespace)
	return match(why, Evidence{fromPolicy, why})
}

func heldByRule(f *Facts, a *Allocation) (Ruling, bool) {
	terms := f.terms(a)
	if !terms.Hold {
		return noMatch()
	}
	note := fmt.Sprintf("rules[%d] holds what it matches: %s", terms.Rule, f.policy.Rules[terms.Rule].Match)
	return match(note, Evidence{fromPolicy, note})
}

func restoredLately(f *Facts, a *Allocation) (Ruling, bool) {
	at := f.restoredAt(a)
	until := at.Add(f.policy.Journal.RestoreHold.Duration)
	if at.IsZero() || !f.now.Before(until) || f.terms(a).ReleaseRestored {
		return noMatch()
	}
	return match("a restore put it back, and it is held until "+stamp(until), Evidence{fromLedger, "a restore put it back at " + stamp(at)})
}

func unknownField(_ *Facts, a *Allocation) (Ruling, bool) {
	if a.UnknownField == "" {
		return noMatch()
	}
	note := "it has a field that this program does not know: " + a.UnknownField
	return match(note, Evidence{fromStore, note})
}

func noToken(_ *Facts, a *Allocation) (Ruling, bool) {
	if a.Token != "" {
		return noMatch()
	}
	return match("", Evidence{fromStore, "the allocation has no token by which a change could be noticed"})
}

// tooYoung begins the grace period, which counts from now on. An allocation of the future
// has a wrong clock, and ripen waits for it.
func tooYoung(f *Facts, a *Allocation) (Ruling, bool) {
	minAge, age := f.terms(a).MinAge, f.now.Sub(a.Created)
	if a.Interrupted || a.Created.IsZero() || age < 0 || age >= minAge {
		return noMatch()
	}
	gone := !f.present(a) // else a pod that lives may have it, and only look replaced
	return Ruling{
		FirstSeen: f.since(a), remember: gone, Note: "it is too young until " + stamp(a.Created.Add(minAge)),
		Evidence: []Evidence{{fromStore, "it was allocated at " + stamp(a.Created)}, {fromPolicy, f.termOf(a, "minAge", minAge)}},
	}, true
}

// termOf says how long a term of the allocation is, and which rule of the policy may have
// set it.
func (f *Facts) termOf(a *Allocation, field string, d time.Duration) string {
	says := fmt.Sprintf("%s is %v", field, d)
	if rule := f.terms(a).Rule; rule >= 0 {
		says += fmt.Sprintf(", by rules[%d]: %s", rule, f.policy.Rules[rule].Match)
	}
	return says
}

// when returns the rule for allocations whose named pod is in a state in which it does
// not have them any more.
func when(state func(f *Facts, a *Allocation) bool) func(*Facts, *Allocation) (Ruling, bool) {
	return func(f *Facts, a *Allocation) (Ruling, bool) {
		if !state(f, a) {
			return noMatch()
		}
		pod, _ := f.named(a)
		return f.ripen(a, 0, "", pod.evidence())
	}
}

func podMoved(f *Facts, a *Allocation) (Ruling, bool) {
	if !f.moved(a) {
		return noMatch()
	}
	pod, _ := f.named(a)
	says := "the pod is on node " + pod.Node
	least := f.addInFlight(a)
	if !f.census.off(a.Owner.Node) { // the kubelet may still end the earlier pod
		least = max(least, defaultTermination+endMargin)
	}
	return f.ripen(a, least, says, Evidence{fromPods, says}, Evidence{fromStore, "the allocation is on node " + a.Owner.Node})
}

func sandboxReplaced(f *Facts, a *Allocation) (Ruling, bool) {
	if !f.otherSandbox(a) {
		return noMatch()
	}
	note, evidence := f.otherAddress(a)
	return f.ripen(a, f.addInFlight(a), note, evidence)
}

// addInFlight returns how long an allocation waits at least that may be of an ADD which is
// not complete: until it is older than an ADD can take. Where sandboxes adopt
// allocations, one can be older than the ADD that has it now.
func (f *Facts) addInFlight(a *Allocation) time.Duration {
	if a.SandboxOwned && !a.Created.IsZero() && !a.Created.After(f.now) {
		return a.Created.Add(addWindow).Sub(f.since(a))
	}
	return max(f.terms(a).MinAge, addWindow)
}

// otherAddress names the address that the pod has in place of this allocation's.
func (f *Facts) otherAddress(a *Allocation) (note string, evidence Evidence) {
	pod, _ := f.named(a)
	other, _ := f.replacement(a, pod)
	return "the pod has " + other.String(), Evidence{fromStore, "a later sandbox of the pod has " + other.String()}
}

// emptyHandle waits at least as long as sandboxReplaced does: Calico writes the handle
// of an ADD before the block.
func emptyHandle(f *Facts, a *Allocation) (Ruling, bool) {
	if !a.EmptyHandle {
		return noMatch()
	}
	return f.ripen(a, max(f.terms(a).MinAge, addWindow), "", Evidence{fromStore, "the handle holds no address"})
}

func sandboxAbsent(f *Facts, a *Allocation) (Ruling, bool) {
	if a.namesPod() || !a.holdsAddress() {
		return noMatch()
	}
	return f.ripen(a, f.whileStarting(a), "", Evidence{fromPods, "no pod shows the sandbox or the address"})
}

// whileStarting returns how long an allocation that names no pod waits at least while
// pods are starting. It may be of one of their ADDs. An allocation that stays as it is
// for longer than an ADD can take is not.
func (f *Facts) whileStarting(a *Allocation) time.Duration {
	if len(f.census.starting) == 0 {
		return 0
	}
	return max(f.terms(a).MinAge, addWindow)
}

func podAbsent(f *Facts, a *Allocation) (Ruling, bool) {
	if _, presence := f.census.pod(a.Owner.Pod); presence != Absent {
		return noMatch()
	}
	var least time.Duration
	if a.Inferred {
		least = f.whileStarting(a)
	}
	return f.ripen(a, least, "", Evidence{fromPods, "the pod does not exist"})
}
