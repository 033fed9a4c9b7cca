// Package policy is the operator's policy: which allocations a run may release, how
// long it waits, and where it stops.
//
// [Load] decodes a policy strictly, fills in the defaults and validates the result, in that order.
// [Policy.Terms] then returns what the policy says about one allocation. A policy with a field or a
// value that this program does not know does not load: otherwise an operator would rely on a
// protection that does not exist.
package policy

// APIVersion and Kind are the only values that Load accepts.
const (
	APIVersion = "ip-reaper/v1alpha1"
	Kind       = "ReapPolicy"
)

// Policy is one policy file. Every pointer, list and map directly in it or in its Namespaces,
// Limits, Protection and Journal is non-nil after Load and Default, and every enum has one of its
// values. The zero Policy has nothing in scope.
type Policy struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// DryRun stops a run before it writes. True if absent: only an explicit false
	// releases. YAML 1.1, and therefore Kubernetes, reads no, off and n as false,
	// so these are explicit too.
	DryRun *bool `json:"dryRun,omitzero"`

	// GracePeriod is how long an entry must have been ownerless before it is
	// released. 15m if absent.
	GracePeriod *Duration `json:"gracePeriod,omitzero"`

	// MinAge is the age below which no entry is suspected, if the store records
	// it. 5m if absent.
	MinAge *Duration `json:"minAge,omitzero"`

	Namespaces Namespaces `json:"namespaces,omitzero"`

	// Rules override the terms of the allocations that they match. The first rule
	// that matches wins.
	Rules []Rule `json:"rules,omitzero"`

	// Backends has the settings by backend name. The zero Backend is the default,
	// so a backend that is not named here has the default.
	Backends map[string]Backend `json:"backends,omitzero"`

	Evidence   Evidence   `json:"evidence,omitzero"`
	Pods       Pods       `json:"pods,omitzero"`
	Nodes      Nodes      `json:"nodes,omitzero"`
	Limits     Limits     `json:"limits,omitzero"`
	Protection Protection `json:"protection,omitzero"`
	Journal    Journal    `json:"journal,omitzero"`
}

// Namespaces are glob patterns for the namespaces in scope: those of the pods that
// own the allocations. Exclude wins.
type Namespaces struct {
	Include []string `json:"include,omitzero"` // ["*"] if absent; never empty
	Exclude []string `json:"exclude,omitzero"`
}

// A Rule sets other terms for the allocations that it matches. If it leaves a
// field nil, the policy's own value applies, never a later rule's.
type Rule struct {
	Match       Match     `json:"match"`
	GracePeriod *Duration `json:"gracePeriod,omitzero"`
	MinAge      *Duration `json:"minAge,omitzero"`

	// If Hold is set, the allocations are reported and never released.
	Hold bool `json:"hold,omitzero"`

	// Restored is Release if Journal.RestoreHold does not apply to the allocations.
	// Hold if absent.
	Restored Disposition `json:"restored,omitzero"`
}

// A Match selects allocations by glob patterns in the syntax of path.Match. An
// allocation must match one pattern of each list. An empty list matches all. At
// least one list is not empty.
type Match struct {
	Namespaces []string `json:"namespaces,omitzero"`
	Pods       []string `json:"pods,omitzero"`
	Backends   []string `json:"backends,omitzero"`
}

// Evidence says what, besides pod status, is evidence that an address is in use.
type Evidence struct {
	// Annotations is KeepAnnotations if absent.
	Annotations AnnotationEvidence `json:"annotations,omitzero"`
}

// Pods are the dispositions of the allocations of pods in a doubtful state.
type Pods struct {
	// Finished applies to pods that Succeeded or Failed. Hold if absent.
	Finished Disposition `json:"finished,omitzero"`

	// Superseded applies to sandboxes that a newer sandbox of the same pod has
	// replaced. Release if absent.
	Superseded Disposition `json:"superseded,omitzero"`

	// Stuck applies to pods that hung in Terminating on a ready node until they were
	// deleted by force, and to static pods without their mirrors: their sandboxes may still be
	// running. Hold if absent.
	Stuck Disposition `json:"stuck,omitzero"`

	// Unnamed applies to entries that name a sandbox and no pod. Hold if absent.
	Unnamed Disposition `json:"unnamed,omitzero"`
}

// Nodes are the dispositions of the allocations on nodes in a doubtful state.
type Nodes struct {
	// Unreachable applies to a node that exists, is not ready, and has no
	// out-of-service taint: its sandboxes may still be running. Hold if absent.
	Unreachable Disposition `json:"unreachable,omitzero"`

	// Foreign applies to a node that a store has an object of its own for, and that is none of
	// the cluster: another cluster may keep its addresses in the same store. Hold if absent.
	Foreign Disposition `json:"foreign,omitzero"`

	// Unknown applies while some node is unreachable, to the allocations whose node
	// is not known: their sandboxes may be running there. Hold if absent.
	Unknown Disposition `json:"unknown,omitzero"`
}

// Limits bound how much one run may release. A plan that exceeds one of them is
// refused as a whole.
type Limits struct {
	// MaxReleases is the largest number of releases in one run. 0 means no limit. 0
	// if absent.
	MaxReleases *int `json:"maxReleases,omitzero"`

	// MaxFraction is the largest part of all listed allocations that may be
	// released, above 0 and at most 1. 0.5 if absent.
	MaxFraction *float64 `json:"maxFraction,omitzero"`

	// MaxPodDrop is the largest part of the pods that are not finished, or of the nodes,
	// that may have vanished since the last run, above 0 and at most 1. 0.5 if absent.
	MaxPodDrop *float64 `json:"maxPodDrop,omitzero"`

	// MinEntries is the number of allocations below which MaxFraction does not
	// apply, and the number of pods below which MaxPodDrop does not apply. 20 if
	// absent.
	MinEntries *int `json:"minEntries,omitzero"`
}

// Protection says which allocations are kept even if their pod does not exist.
type Protection struct {
	// StatefulSets is OrdinalInRange if absent.
	StatefulSets StatefulSetProtection `json:"statefulSets,omitzero"`
}

// Journal says how long records of releases are kept, and restored allocations
// held. A journal is removed when neither Keep nor KeepFor keeps it.
type Journal struct {
	// Keep is the number of runs whose releases can be undone, from 1 to 100. 10 if
	// absent.
	Keep *int `json:"keep,omitzero"`

	// KeepFor is how long, at least, the releases of a run can be undone. 168h if absent.
	KeepFor *Duration `json:"keepFor,omitzero"`

	// RestoreHold is how long an allocation that a restore put back is held. 24h if
	// absent.
	RestoreHold *Duration `json:"restoreHold,omitzero"`
}
