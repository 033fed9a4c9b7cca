package reaper

import "strings"

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
	NodeUnreachable  Reason = "NodeUnreachable"
	TerminationStuck Reason = "TerminationStuck"
	SiblingKept      Reason = "SiblingKept"
	EmptyHandle      Reason = "EmptyHandle"
	TooYoung         Reason = "TooYoung"
	RestoredLately   Reason = "Restored"
	UnknownField     Reason = "UnknownField"
	NoToken          Reason = "NoToken"
	Unreadable       Reason = "Unreadable"
	NoCensus         Reason = "NoCensus"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{
		PodPresent, SandboxPresent, AddressInUse, PodAbsent, PodReplaced, PodMoved, SandboxReplaced, PodFinished,
		SandboxAbsent, OutOfScope, RuleHold, Retained, Protected, OwnerUnknown,
		NotPodOwned, NodeUnreachable, TerminationStuck, SiblingKept, EmptyHandle, TooYoung, RestoredLately, UnknownField, NoToken, Unreadable, NoCensus,
	}
}

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
