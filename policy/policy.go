// Package policy is what the operator wrote: which allocations the reaper may
// touch, how long it waits, and where it stops.
//
// [Load] decodes a policy strictly, fills in the defaults and validates the
// result, in this order, and reports every mistake at once. [Policy.Terms] then
// answers what the policy says of one allocation. A policy that asks for
// something this build does not know does not load: a protection that cannot be
// given must not be taken for given.
package policy

// APIVersion and Kind are the only ones that Load accepts.
const (
	APIVersion = "ip-reaper/v1alpha1"
	Kind       = "ReapPolicy"
)

// Policy is one policy file. Every pointer, list and map that is directly in
// it or in its Namespaces, Limits, Protection and Journal is non-nil after Load
// and Default, and every enum has one of its values. The zero Policy has nothing in scope.
type Policy struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// DryRun stops a run before it writes. True if absent: only an explicit
	// false releases. The words no, off and n are explicit too, for YAML 1.1,
	// and Kubernetes with it, reads them as false.
	DryRun *bool `json:"dryRun,omitzero"`

	// GracePeriod is how long an entry must have been without an owner before
	// it is released. 15m if absent.
	GracePeriod *Duration `json:"gracePeriod,omitzero"`

	// MinAge is the age below which no entry is suspected, where the store
	// tells the age. 5m if absent.
	MinAge *Duration `json:"minAge,omitzero"`

	Namespaces Namespaces `json:"namespaces,omitzero"`

	// Rules override the terms of the allocations they match. The first that
	// matches wins.
	Rules []Rule `json:"rules,omitzero"`

	// Backends holds settings by the name of the backend. A look-up of one that
	// is not named here yields the zero Backend, which is its default.
	Backends map[string]Backend `json:"backends,omitzero"`

	Pods       Pods       `json:"pods,omitzero"`
	Nodes      Nodes      `json:"nodes,omitzero"`
	Limits     Limits     `json:"limits,omitzero"`
	Protection Protection `json:"protection,omitzero"`
	Journal    Journal    `json:"journal,omitzero"`
}

// Namespaces says by glob patterns which namespaces are in scope, those of the
// pods that own the allocations. Exclude wins.
type Namespaces struct {
	Include []string `json:"include,omitzero"` // ["*"] if absent; never empty
	Exclude []string `json:"exclude,omitzero"`
}

// A Rule sets other terms for the allocations that it matches. What it leaves
// nil is taken from the policy, never from a later rule.
type Rule struct {
	Match       Match     `json:"match"`
	GracePeriod *Duration `json:"gracePeriod,omitzero"`
	MinAge      *Duration `json:"minAge,omitzero"`

	// Hold reports the allocations and never releases them.
	Hold bool `json:"hold,omitzero"`
}

// Match names allocations by glob patterns in the syntax of path.Match. A
// allocation must match one pattern of each list; an empty list matches all.
// At least one list is not empty.
type Match struct {
	Namespaces []string `json:"namespaces,omitzero"`
	Pods       []string `json:"pods,omitzero"`
	Backends   []string `json:"backends,omitzero"`
}

// Pods says what becomes of the allocations of pods in a doubtful state.
type Pods struct {
	// Finished is about pods that Succeeded or Failed. Hold if absent.
	Finished Disposition `json:"finished,omitzero"`

	// Superseded is about sandboxes that a newer sandbox of the same pod has
	// replaced. Release if absent.
	Superseded Disposition `json:"superseded,omitzero"`

	// Unnamed is about entries that name a sandbox and no pod. Hold if absent.
	Unnamed Disposition `json:"unnamed,omitzero"`
}

// Nodes says what becomes of the allocations on nodes in a doubtful state.
type Nodes struct {
	// Unreachable is about a node that exists but is not ready, and is not
	// marked out-of-service: its sandboxes may still be running. Hold if absent.
	Unreachable Disposition `json:"unreachable,omitzero"`
}

// Limits bound what one run may release. A plan beyond any of them is refused
// as a whole.
type Limits struct {
	// MaxReleases is the number of releases in one run. 0, also if absent,
	// means no limit.
	MaxReleases *int `json:"maxReleases,omitzero"`

	// MaxFraction is the part of all listed allocations that may be released,
	// above 0 and at most 1. 0.5 if absent.
	MaxFraction *float64 `json:"maxFraction,omitzero"`

	// MaxPodDrop is the part of the pods, or of the nodes, that may be gone since
	// the last run for the rest to be believed, above 0 and at most 1. 0.5 if
	// absent.
	MaxPodDrop *float64 `json:"maxPodDrop,omitzero"`

	// MinEntries is the number of allocations below which MaxFraction does not
	// apply, and of pods below which MaxPodDrop does not. 20 if absent.
	MinEntries *int `json:"minEntries,omitzero"`
}

// Protection says which allocations are kept for a pod that is not there.
type Protection struct {
	// StatefulSets is OrdinalInRange if absent.
	StatefulSets StatefulSetProtection `json:"statefulSets,omitzero"`
}

// Journal says how long it is remembered what was released.
type Journal struct {
	// Keep is the number of runs whose releases can be undone, from 1 to 100. 10
	// if absent.
	Keep *int `json:"keep,omitzero"`
}
