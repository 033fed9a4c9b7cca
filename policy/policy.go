// Package policy is the operator's policy: which allocations a run may release, how
// long it waits, and where it stops.
//
// [Load] decodes a policy strictly, fills in the defaults and validates the result, in that order.
// [Compiled.Terms] then returns what the policy says about one allocation. A policy with a field or a
// value that this program does not know does not load: otherwise an operator would rely on a
// protection that does not exist.
package policy

import (
	"cmp"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"time"
)

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
	Pools      []string `json:"pools,omitzero"` // also of networks and attachments; or CIDRs around a pool
	Nodes      []string `json:"nodes,omitzero"`
}

// lists returns the lists with their names.
func (m Match) lists() []matchList {
	return []matchList{
		{"namespaces", NamespaceNames, m.Namespaces}, {"pods", PodNames, m.Pods}, {"backends", BackendNames, m.Backends},
		{"pools", PoolNames, m.Pools}, {"nodes", NodeNames, m.Nodes},
	}
}

// A matchList is one list of a Match.
type matchList struct {
	name     string
	of       NameKind
	patterns []string
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

// A Disposition says whether an allocation may be released. Only Release allows it.
// Any other value, the zero value included, means Hold.
type Disposition string

// Hold keeps and reports an allocation. Release allows its release.
const (
	Hold    Disposition = "hold"
	Release Disposition = "release"
)

// A StatefulSetProtection says whether a StatefulSet protects the allocations of
// its absent pods. Only Ignore means that it does not. Any other value means that
// it does.
type StatefulSetProtection string

// The values of a StatefulSetProtection.
const (
	// OrdinalInRange protects the allocations of an ordinal that the StatefulSet
	// still wants, because that pod will come back.
	OrdinalInRange StatefulSetProtection = "ordinalInRange"

	// Ignore treats the pods of StatefulSets like all others.
	Ignore StatefulSetProtection = "ignore"
)

// An AnnotationEvidence says for which allocations a pod's annotation is evidence. Only
// OwnAnnotations excludes allocations that name another pod. Any other value means that it is
// evidence for all.
type AnnotationEvidence string

// The values of an AnnotationEvidence.
const (
	KeepAnnotations AnnotationEvidence = "keep"
	OwnAnnotations  AnnotationEvidence = "own"
)

// A Switch says whether a backend is used. In JSON it is "auto" or a boolean.
type Switch int

const (
	// Auto uses the backend if its store is installed, and skips it otherwise.
	Auto Switch = iota

	// On uses the backend. A store that is not installed is a failure.
	On

	// Off does not use the backend.
	Off
)

// UnmarshalJSON reads "auto" or a boolean. It refuses a boolean in quotes.
func (s *Switch) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"auto"`:
		*s = Auto
	case "true":
		*s = On
	case "false":
		*s = Off
	default:
		return &json.UnmarshalTypeError{Value: string(data), Type: reflect.TypeFor[Switch]()}
	}
	return nil
}

// durationPattern is the pattern of durations in the schema. Durations that it matches do not
// overflow: six of the largest parts are about 190 years.
var durationPattern = regexp.MustCompile(`^[+]?(0|(([0-9]{1,5}([.][0-9]*)?|[.][0-9]+)h|([0-9]{1,7}([.][0-9]*)?|[.][0-9]+)m|([0-9]{1,9}([.][0-9]*)?|[.][0-9]+)s|([0-9]{1,12}([.][0-9]*)?|[.][0-9]+)ms|([0-9]{1,15}([.][0-9]*)?|[.][0-9]+)(us|µs|μs)|([0-9]{1,18}([.][0-9]*)?|[.][0-9]+)ns){1,6})$`)

// A Duration is a time.Duration that is a string in JSON, such as "15m".
type Duration struct{ time.Duration }

// String returns the duration as people write it: "15m" and not "15m0s".
func (d Duration) String() string {
	s := d.Duration.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalJSON writes a string that UnmarshalJSON reads as the same duration.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String())
}

// UnmarshalJSON reads a string for time.ParseDuration. It refuses a number other
// than 0, because a number has no unit.
func (d *Duration) UnmarshalJSON(data []byte) error {
	wrong := &json.UnmarshalTypeError{Value: string(data), Type: reflect.TypeFor[Duration]()}
	if string(data) == "0" {
		data = []byte(`"0"`)
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return wrong
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed >= 0 && !durationPattern.MatchString(text) {
		return wrong
	}
	d.Duration = parsed
	return nil
}

// Default returns the policy of a file that has only apiVersion and kind. Each call
// returns a new value.
func Default() Policy {
	p := Policy{APIVersion: APIVersion, Kind: Kind}
	p.setDefaults()
	return p
}

// setDefaults sets absent fields. It does not change a field that is present, even
// if its value is not valid.
func (p *Policy) setDefaults() {
	setDefault(&p.DryRun, true)
	setDefault(&p.GracePeriod, Duration{15 * time.Minute})
	// The CNI ADD of a pod may take 4 minutes from the allocation to the address in
	// the pod's status.
	setDefault(&p.MinAge, Duration{5 * time.Minute})
	if p.Namespaces.Include == nil {
		p.Namespaces.Include = []string{"*"}
	}
	if p.Namespaces.Exclude == nil {
		p.Namespaces.Exclude = []string{}
	}
	if p.Rules == nil {
		p.Rules = []Rule{}
	}
	if p.Backends == nil {
		p.Backends = map[string]Backend{}
	}
	p.Evidence.Annotations = cmp.Or(p.Evidence.Annotations, KeepAnnotations)
	p.Pods.Finished = cmp.Or(p.Pods.Finished, Hold)
	p.Pods.Superseded = cmp.Or(p.Pods.Superseded, Release)
	p.Pods.Stuck = cmp.Or(p.Pods.Stuck, Hold)
	p.Pods.Unnamed = cmp.Or(p.Pods.Unnamed, Hold)
	p.Nodes.Unreachable = cmp.Or(p.Nodes.Unreachable, Hold)
	p.Nodes.Unknown = cmp.Or(p.Nodes.Unknown, Hold)
	p.Nodes.Foreign = cmp.Or(p.Nodes.Foreign, Hold)
	setDefault(&p.Limits.MaxReleases, 0)
	setDefault(&p.Limits.MaxFraction, 0.5)
	setDefault(&p.Limits.MaxPodDrop, 0.5)
	setDefault(&p.Limits.MinEntries, 20)
	p.Protection.StatefulSets = cmp.Or(p.Protection.StatefulSets, OrdinalInRange)
	setDefault(&p.Journal.Keep, 10)
	setDefault(&p.Journal.KeepFor, Duration{7 * 24 * time.Hour})
	setDefault(&p.Journal.RestoreHold, Duration{24 * time.Hour})
}

func setDefault[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}
