package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

// A Reason says why an allocation got its verdict. Reasons are stable words that users
// script against.
type Reason string

// The reasons. Rules, groups and protections give them; docs/verdicts.md says when.
const (
	PodPresent       Reason = "PodPresent"
	SandboxPresent   Reason = "SandboxPresent"
	AddressInUse     Reason = "AddressInUse"
	PodAbsent        Reason = "PodAbsent"
	PodReplaced      Reason = "PodReplaced"
	PodMoved         Reason = "PodMoved"
	SandboxReplaced  Reason = "SandboxReplaced"
	PodFinished      Reason = "PodFinished"
	SandboxAbsent    Reason = "SandboxAbsent"
	OutOfScope       Reason = "OutOfScope"
	RuleHold         Reason = "RuleHold"
	Retained         Reason = "Retained"
	Protected        Reason = "Protected"
	OwnerUnknown     Reason = "OwnerUnknown"
	NotPodOwned      Reason = "NotPodOwned"
	NodeForeign      Reason = "NodeForeign"
	NodeUnreachable  Reason = "NodeUnreachable"
	TerminationStuck Reason = "TerminationStuck"
	StaticPod        Reason = "StaticPod"
	StoreUnseen      Reason = "StoreUnseen"
	SiblingKept      Reason = "SiblingKept"
	EmptyHandle      Reason = "EmptyHandle"
	TooYoung         Reason = "TooYoung"
	RestoredLately   Reason = "Restored"
	UnknownField     Reason = "UnknownField"
	BeingDeleted     Reason = "BeingDeleted"
	NoToken          Reason = "NoToken"
	Unreadable       Reason = "Unreadable"
	NoCensus         Reason = "NoCensus"
)

// Words returns the reason as people write it: NodeUnreachable is "node unreachable".
func (r Reason) Words() string {
	var b strings.Builder
	for i, c := range string(r) {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte(' ')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Evidence is what one source says about an allocation.
type Evidence struct {
	Source string `json:"source"` // such as "pod status" or "node n3"
	Says   string `json:"says"`
}

// The sources that have no name of their own.
const (
	fromStore      = "store"
	fromPolicy     = "policy"
	fromPods       = "list of pods"
	fromRuntime    = "container runtime"
	fromSiblings   = "group"
	fromProtection = "protection"
	fromLedger     = "ledger"
	fromNodes      = "list of nodes"
)

// fromStoreNode is the prefix of a source that is a node of a store.
const fromStoreNode = string(census.KindStoreNode) + " "

// Stamp formats a time for people.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// lostBy says why the pod no longer has the allocation: it has ended, or is another pod
// of the same name.
func lostBy(p census.Pod) Evidence {
	if p.Finished {
		return Evidence{census.PodStatus, "the pod has ended"}
	}
	return Evidence{fromPods, "the pod of that name has the UID " + p.UID}
}

// wantedBy says which ordinals the StatefulSet wants.
func wantedBy(s census.StatefulSet) Evidence {
	return Evidence{
		"StatefulSet " + s.Namespace + "/" + s.Name,
		fmt.Sprintf("it wants the ordinals %d to %d", s.Start, s.Start+s.Replicas-1),
	}
}

// notReady says that the node is not ready, and since when.
func notReady(n census.Node) Evidence {
	says := "it is not ready"
	if !n.Since.IsZero() {
		says += " since " + Stamp(n.Since)
	}
	return Evidence{"node " + n.Name, says}
}

// hidden says how many pods may have an address that they do not show.
func hidden(c census.Census) Evidence {
	return Evidence{fromPods, fmt.Sprintf("%d pods do not show their addresses", c.Hiding())}
}
