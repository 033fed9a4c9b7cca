package reaper

// A Reason says why a allocation got its verdict. Reasons are stable words
// that users script against.
type Reason string

// The reasons of verdicts.
const (
	PodPresent      Reason = "PodPresent"      // its pod exists
	AddressInUse    Reason = "AddressInUse"    // a pod that it does not name shows the address
	PodAbsent       Reason = "PodAbsent"       // its pod does not exist
	PodReplaced     Reason = "PodReplaced"     // a pod of that name exists, with another UID
	SandboxReplaced Reason = "SandboxReplaced" // its pod has another address of this pool on that interface
	PodFinished     Reason = "PodFinished"     // its pod has succeeded or failed
	SandboxAbsent   Reason = "SandboxAbsent"   // it names a sandbox only, and no pod shows that or the address
	OutOfScope      Reason = "OutOfScope"      // the policy's namespaces leave its pod out
	RuleHold        Reason = "RuleHold"        // a rule of the policy holds it
	Retained        Reason = "Retained"        // a StatefulSet brings its pod back
	Protected       Reason = "Protected"       // somebody keeps the address back
	OwnerUnknown    Reason = "OwnerUnknown"    // it names no owner, or none that can be understood
	NotPodOwned     Reason = "NotPodOwned"     // it was not reserved for a pod
	NodeUnreachable Reason = "NodeUnreachable" // its node is not ready, and its sandbox may still be running there
	SiblingKept     Reason = "SiblingKept"     // another address of the same sandbox is kept
	EmptyHandle     Reason = "EmptyHandle"     // it holds no address any more
	TooYoung        Reason = "TooYoung"        // it is younger than minAge
	NoToken         Reason = "NoToken"         // the store could not notice that it changed hands
	Unreadable      Reason = "Unreadable"      // it could not be understood
	NoCensus        Reason = "NoCensus"        // nobody was asked who is alive, or before it was listed
)

// A Verdict is what a verdict concludes. The zero value keeps.
type Verdict int

// The verdicts, in the order in which a allocation loses its protection.
const (
	Held      Verdict = iota // kept, for the reason that is given
	InUse                    // somebody has it
	Suspected                // nobody has it, but not for long enough
	Orphaned                 // nobody has it, and the grace period is over
)

// String returns the word that reports use.
func (s Verdict) String() string {
	switch s {
	case InUse:
		return "inUse"
	case Suspected:
		return "suspected"
	case Orphaned:
		return "orphan"
	default:
		return "held"
	}
}
