package reaper

import (
	"net/netip"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// addWindow is the shortest time after which an entry that a newer sandbox
// seems to have replaced is believed, whatever the policy says. While a new
// sandbox is being set up, its pod still shows the old one's address, and the
// new entry looks like the superseded one. The kubelet gives a sandbox 4
// minutes: twice its runtimeRequestTimeout of 2 (k8s.io/cri-client, RunPodSandbox).
const addWindow = 4 * time.Minute

// A Verdict is what Judge concluded of one allocation.
type Decision struct {
	Allocation Allocation
	Verdict    Verdict
	Reason     Reason

	// Note adds what the reason does not say, such as which other pod shows
	// the address. A allocation in use with a note is a disagreement that an
	// operator should see.
	Note string

	// FirstSeen is when a run first saw it ownerless, without a break since;
	// Due is when its grace period is over, or that for which it is Protected.
	// Both are zero unless it is Suspected, Orphaned or Protected, or bound to what
	// is; Due also where it is kept for good.
	FirstSeen time.Time
	Due       time.Time

	ownerless bool   // but for what keeps it, nobody has it
	remember  bool   // since when, in the ledger
	node      string // where the pod is, for the ledger; empty if the store tells
	after     []int  // the verdicts whose entries must be released first
	orphan    Orphan
}

// An Orphan is a allocation that a complete census has no owner for, and that
// has been ownerless for its grace period. Only Judge makes one. It is a
// suspicion: only Confirm makes a permission of it.
type Orphan struct {
	pool       *Pool
	allocation Allocation
	reason     Reason
	claims     map[netip.Addr][]claim
	group      []Orphan // all that it is bound to, itself included
}

// Allocation returns what is suspected; the zero Allocation for a zero
// Orphan.
func (o Orphan) Allocation() Allocation { return o.allocation }

// Judge gives every allocation of the inventory one verdict and one reason.
// It is pure: the same arguments give the same verdicts, in the same order. A
// census that was begun before the inventory was complete is not believed.
func Judge(now time.Time, p policy.Policy, inv Inventory, c Census, l Ledger) []Decision {
	if inv.ended.IsZero() || c.began.Before(inv.ended) {
		c = Census{}
	}
	decisions := make([]Decision, 0, inv.size())
	k := protectionsOf(inv)
	for _, listing := range inv.Listings {
		claims := listing.claims()
		for i := range listing.Pools {
			pool := &listing.Pools[i]
			for _, r := range pool.Allocations {
				node := located(c, l, r)
				if node != "" {
					r.Owner.Node = node
				}
				v := judge(now, p, c, l, Orphan{pool: pool, allocation: r, claims: claims})
				v.node = node
				k.hold(now, &v)
				decisions = append(decisions, v)
			}
		}
	}
	bind(now, decisions)
	k.judge(now, decisions)
	return decisions
}

// located returns where the pod of an entry is, or was when it was last seen;
// nothing where the store itself says where the entry is.
func located(c Census, l Ledger, r Allocation) string {
	if r.Owner.Node != "" || !r.saysWhose() {
		return ""
	}
	known := l.node(r)
	pod, presence := c.pod(r.Owner.Pod)
	if presence == Present && pod.Node != "" && (known == "" || pod.shows(r.IP)) {
		return pod.Node
	}
	return known
}

// judge weighs one allocation, wrapped in the orphan that it may turn out to
// be.
func judge(now time.Time, p policy.Policy, c Census, l Ledger, o Orphan) Decision {
	r := o.allocation
	f := assess(p, c, o)
	v := Decision{Allocation: r, Verdict: f.verdict, Reason: f.reason, Note: f.note, ownerless: f.ownerless()}
	if f.verdict != Suspected {
		return v
	}
	terms := p.Terms(r.Owner.Pod.Namespace, r.Owner.Pod.Name, r.Backend)
	if !r.holdsAddress() && r.Owner.Pod == (PodRef{}) {
		terms = p.BackendTerms(r.Backend) // no name would ever let it go
	}
	switch {
	case !terms.InScope:
		v.Verdict, v.Reason = Held, OutOfScope
	case terms.Hold:
		v.Verdict, v.Reason = Held, RuleHold
	case r.Token == "":
		v.Verdict, v.Reason = Held, NoToken
	case !r.Interrupted && !r.Created.IsZero() && now.Sub(r.Created) < terms.MinAge:
		v.Verdict, v.Reason = Held, TooYoung
	}
	if v.Verdict == Held {
		return v
	}

	wait := terms.Grace
	// An entry that a sandbox may adopt can be older than the ADD that has it now.
	settled := r.SandboxOwned && !r.Created.IsZero() && now.Sub(r.Created) >= addWindow
	if f.reason == EmptyHandle || f.reason == SandboxReplaced && !settled {
		wait = max(wait, terms.MinAge, addWindow)
	}
	if r.Interrupted {
		wait = 0
	}
	v.remember = wait > 0
	v.FirstSeen = l.since(r.id(), now)
	v.Due = v.FirstSeen.Add(wait)
	if !now.Before(v.Due) {
		v.Verdict = Orphaned
		o.reason = f.reason
		v.orphan = o
	}
	return v
}

// A finding is what the census says of a allocation, before policy terms and
// time have their say: Suspected means that it has no owner.
type finding struct {
	verdict Verdict
	reason  Reason
	note    string
}

// ownerless reports whether nobody has the entry, whatever keeps it.
func (f finding) ownerless() bool {
	return f.verdict == Suspected || f.reason == NodeUnreachable || f.reason == Retained || f.reason == Protected
}

// assess looks for an owner. The first row that matches decides; an entry whose
// node may still run its sandbox has one, whoever else is gone. What is kept back
// has none, and is held.
func assess(p policy.Policy, c Census, o Orphan) finding {
	f := assessOwner(p, c, o)
	r := o.allocation
	switch node := r.Owner.Node; {
	case f.verdict != Suspected:
	case p.Nodes.Unreachable != policy.Release && c.unreachable(node):
		return finding{Held, NodeUnreachable, "node " + node + " is not ready"}
	case r.Protected != "" && !r.Interrupted:
		return finding{Held, Protected, r.Protected}
	}
	return f
}

// assessOwner looks for the pod.
func assessOwner(p policy.Policy, c Census, o Orphan) finding {
	r := o.allocation
	switch {
	case r.Unreadable != "":
		return finding{Held, Unreadable, r.Unreadable}
	case r.Foreign != "":
		return finding{Held, NotPodOwned, r.Foreign}
	case r.EmptyHandle:
		return assessEmptyHandle(c, r)
	case r.Protects != nil:
		return assessProtection(p, c, r)
	case !r.IP.IsValid():
		return finding{Held, Unreadable, "the entry has no address"}
	case r.Owner.Pod.Namespace == "" || r.Owner.Pod.Name == "":
		return assessUnnamed(p, c, o)
	}
	if c.began.IsZero() {
		return finding{Held, NoCensus, ""}
	}
	if by, ok := shownBy(p, c, o); ok {
		if by == r.Owner.Pod {
			return finding{InUse, PodPresent, ""}
		}
		return finding{InUse, AddressInUse, "shown by pod " + by.String()}
	}

	switch pod, presence := c.pod(r.Owner.Pod); presence {
	case Present:
		if r.Inferred {
			return finding{InUse, PodPresent, ""} // a guess proves nothing against a pod
		}
		return assessPresent(p, pod, o)
	case Absent:
		if p.Protection.StatefulSets != policy.Ignore && c.wanted(r.Owner.Pod) {
			return finding{Held, Retained, "its StatefulSet brings the pod back"}
		}
		if r.Inferred && (p.Pods.Unnamed != policy.Release || c.addressUnknown > 0) {
			return finding{Held, OwnerUnknown, "it does not say that it is a pod's"}
		}
		return finding{Suspected, PodAbsent, ""}
	default:
		return finding{Held, NoCensus, ""}
	}
}

// assessPresent judges an entry whose pod exists but does not show the address,
// or is finished. A finished pod that shows it is judged as that, whatever else
// speaks against the entry.
func assessPresent(p policy.Policy, pod Pod, o Orphan) finding {
	if pod.Finished && pod.shows(o.allocation.IP) {
		return disposed(p.Pods.Finished, PodFinished, "")
	}
	uid := o.allocation.Owner.UID
	if uid != "" && pod.UID != "" && uid != pod.UID {
		return finding{Suspected, PodReplaced, ""}
	}
	if other, ok := superseded(pod, o); ok {
		return disposed(p.Pods.Superseded, SandboxReplaced, "the pod has "+other.String())
	}
	if pod.Finished {
		return disposed(p.Pods.Finished, PodFinished, "")
	}
	return finding{InUse, PodPresent, ""}
}

// assessUnnamed looks for the owner of an entry that names no pod.
func assessUnnamed(p policy.Policy, c Census, o Orphan) finding {
	r := o.allocation
	if r.Owner.Pod != (PodRef{}) || r.Owner.Sandbox == "" {
		return finding{Held, OwnerUnknown, "it names no pod"}
	}
	if c.began.IsZero() {
		return finding{Held, NoCensus, ""}
	}
	if by, ok := shownBy(p, c, o); ok {
		return finding{InUse, AddressInUse, "shown by pod " + by.String()}
	}
	switch {
	case c.sandboxes[r.Owner.Sandbox]:
		return finding{InUse, PodPresent, "a pod shows its sandbox"}
	case p.Pods.Unnamed != policy.Release:
		return finding{Held, OwnerUnknown, "it names a sandbox only"}
	case c.addressUnknown > 0:
		return finding{Held, OwnerUnknown, "it names a sandbox only, and not every pod shows its addresses"}
	}
	return finding{Suspected, SandboxAbsent, ""}
}

// assessRemnant looks for whoever may be about to use a empty handle.
func assessEmptyHandle(c Census, r Allocation) finding {
	if c.began.IsZero() {
		return finding{Held, NoCensus, ""}
	}
	named := r.Owner.Pod.Namespace != "" && r.Owner.Pod.Name != ""
	switch _, presence := c.pod(r.Owner.Pod); {
	case c.sandboxes[r.Owner.Sandbox]:
		return finding{InUse, PodPresent, "a pod shows its sandbox"}
	case presence == Unknown:
		return finding{Held, NoCensus, ""}
	case presence == Present:
		return finding{InUse, PodPresent, ""}
	case !named && (r.Owner.Sandbox == "" || r.Owner.Pod != (PodRef{})):
		return finding{Held, OwnerUnknown, "it names neither a pod nor a sandbox"}
	}
	return finding{Suspected, EmptyHandle, ""}
}

// disposed turns a policy's word into a finding.
func disposed(d policy.Disposition, reason Reason, note string) finding {
	if d == policy.Release {
		return finding{Suspected, reason, note}
	}
	return finding{Held, reason, note}
}
