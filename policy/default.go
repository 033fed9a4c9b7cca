package policy

import (
	"cmp"
	"time"
)

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
