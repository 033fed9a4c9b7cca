package policy

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// patternCharacters are the characters of the names of namespaces, pods and
// backends, and of globs. A pattern with any other character, such as
// "Kube-System", "a,b", "!a" or "{a,b}", does not match what its author meant, and
// would protect nothing.
const patternCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-." + `*?[]^\`

// validate returns the mistakes in the values of a policy with its defaults.
func (p *Policy) validate(backends []string) field.ErrorList {
	errs := validateDuration(p.GracePeriod, field.NewPath("gracePeriod"))
	errs = append(errs, validateDuration(p.MinAge, field.NewPath("minAge"))...)

	namespaces := field.NewPath("namespaces")
	if len(p.Namespaces.Include) == 0 {
		errs = append(errs, field.Required(namespaces.Child("include"),
			"must have a pattern; leave the field out for all namespaces"))
	}
	errs = append(errs, validatePatterns(p.Namespaces.Include, namespaces.Child("include"))...)
	errs = append(errs, validatePatterns(p.Namespaces.Exclude, namespaces.Child("exclude"))...)

	for i, r := range p.Rules {
		errs = append(errs, r.validate(backends, field.NewPath("rules").Index(i))...)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Backends)) {
		if settings, ok := p.Backends[name].Settings.(Validator); ok {
			errs = append(errs, settings.Validate(field.NewPath("backends", name))...)
		}
	}

	errs = append(errs, validateEnum(p.Evidence.Annotations, field.NewPath("evidence", "annotations"), KeepAnnotations, OwnAnnotations)...)
	pods := field.NewPath("pods")
	errs = append(errs, validateEnum(p.Pods.Finished, pods.Child("finished"), Hold, Release)...)
	errs = append(errs, validateEnum(p.Pods.Stuck, pods.Child("stuck"), Hold, Release)...)
	errs = append(errs, validateEnum(p.Pods.Superseded, pods.Child("superseded"), Hold, Release)...)
	errs = append(errs, validateEnum(p.Pods.Unnamed, pods.Child("unnamed"), Hold, Release)...)
	errs = append(errs, validateEnum(p.Nodes.Unreachable, field.NewPath("nodes", "unreachable"), Hold, Release)...)
	errs = append(errs, validateEnum(p.Nodes.Unknown, field.NewPath("nodes", "unknown"), Hold, Release)...)
	errs = append(errs, validateEnum(p.Nodes.Foreign, field.NewPath("nodes", "foreign"), Hold, Release)...)
	errs = append(errs, p.Limits.validate(field.NewPath("limits"))...)
	errs = append(errs, validateEnum(p.Protection.StatefulSets, field.NewPath("protection", "statefulSets"), OrdinalInRange, Ignore)...)
	return append(errs, p.Journal.validate(field.NewPath("journal"))...)
}

func (r *Rule) validate(backends []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	m, match := r.Match, at.Child("match")
	if m.String() == "" {
		errs = append(errs, field.Required(match, "must have namespaces, pods, backends, pools or nodes; "+
			"set the terms of all allocations outside the rules"))
	}
	errs = append(errs, validatePatterns(m.Namespaces, match.Child("namespaces"))...)
	errs = append(errs, validatePatterns(m.Pods, match.Child("pods"))...)
	errs = append(errs, validateBackendPatterns(m.Backends, backends, match.Child("backends"))...)
	errs = append(errs, validatePoolPatterns(m.Pools, match.Child("pools"))...)
	errs = append(errs, validatePatterns(m.Nodes, match.Child("nodes"))...)
	errs = append(errs, validateDuration(r.GracePeriod, at.Child("gracePeriod"))...)
	if r.Restored != "" {
		errs = append(errs, validateEnum(r.Restored, at.Child("restored"), Hold, Release)...)
	}
	return append(errs, validateDuration(r.MinAge, at.Child("minAge"))...)
}

func (l *Limits) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, number := range []struct {
		name, zero string
		value      int
	}{{"maxReleases", "; 0 means no limit", *l.MaxReleases}, {"minEntries", "", *l.MinEntries}} {
		if number.value < 0 {
			errs = append(errs, field.Invalid(at.Child(number.name), number.value, "must not be negative"+number.zero))
		}
		if number.value > math.MaxInt32 {
			errs = append(errs, field.Invalid(at.Child(number.name), number.value, fmt.Sprintf("must be at most %d", math.MaxInt32)))
		}
	}
	for _, part := range []struct {
		name  string
		value float64
	}{{"maxFraction", *l.MaxFraction}, {"maxPodDrop", *l.MaxPodDrop}} {
		if part.value <= 0 || part.value > 1 {
			errs = append(errs, field.Invalid(at.Child(part.name), part.value, "must be above 0 and at most 1"))
		}
	}
	return errs
}

func (j *Journal) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if *j.Keep < 1 || *j.Keep > 100 {
		errs = append(errs, field.Invalid(at.Child("keep"), *j.Keep, "must be from 1 to 100"))
	}
	errs = append(errs, validateDuration(j.KeepFor, at.Child("keepFor"))...)
	return append(errs, validateDuration(j.RestoreHold, at.Child("restoreHold"))...)
}

func validateDuration(d *Duration, at *field.Path) field.ErrorList {
	if d != nil && d.Duration < 0 {
		return field.ErrorList{field.Invalid(at, d.String(), "must not be negative")}
	}
	return nil
}

func validateEnum[T ~string](value T, at *field.Path, values ...T) field.ErrorList {
	if !slices.Contains(values, value) {
		return field.ErrorList{field.NotSupported(at, string(value), values)}
	}
	return nil
}

// validatePatterns checks patterns for lower-case names.
func validatePatterns(patterns []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range patterns {
		foreign := func(r rune) bool { return !strings.ContainsRune(patternCharacters, r) }
		if strings.ContainsFunc(pattern, foreign) {
			errs = append(errs, field.Invalid(at.Index(i), pattern,
				`must be a lower-case name, in which * ? [a-z] [^a-z] and \ have their meaning as in a shell`))
			continue
		}
		errs = append(errs, validateGlob(pattern, at.Index(i))...)
	}
	return errs
}

// validateBackendPatterns checks patterns for backend names. Each must match one.
func validateBackendPatterns(patterns, backends []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range patterns {
		errs = append(errs, validateGlob(pattern, at.Index(i))...)
		known := func(name string) bool { return matchAny(globs([]string{pattern}), name) != no }
		if !slices.ContainsFunc(backends, known) {
			errs = append(errs, field.NotSupported(at.Index(i), pattern, backends))
		}
	}
	return errs
}

// validatePoolPatterns checks patterns for the names of pools, networks and attachments, and CIDRs.
func validatePoolPatterns(patterns []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range patterns {
		errs = append(errs, validateGlob(pattern, at.Index(i))...)
		ip, _, _ := strings.Cut(pattern, "/")
		_, noPrefix := netip.ParsePrefix(pattern)
		if _, err := netip.ParseAddr(ip); err == nil && noPrefix != nil && ip != pattern || pattern == "" {
			errs = append(errs, field.Invalid(at.Index(i), pattern, "must be a name, a glob pattern or a CIDR such as 10.0.0.0/16"))
		}
	}
	return errs
}

func validateGlob(pattern string, at *field.Path) field.ErrorList {
	if _, err := path.Match(pattern, ""); err != nil {
		return field.ErrorList{field.Invalid(at, pattern, "must be a glob pattern: "+err.Error())}
	}
	return nil
}

// A Known is a backend that a policy may name.
type Known struct {
	Name    string
	Summary string // what the backend holds, in one line

	// Protects is set if it has no allocations, so no rule is about them.
	Protects bool

	// Settings returns a new pointer to the struct into which the fields of
	// backends.<name> except enabled are decoded. Nil means that there are no
	// others. Fields are matched strictly by their json tags, at any depth. None
	// may be a secret: a policy is in a ConfigMap, and messages show values.
	//
	// The pointer may implement Validator, Schemer and Exampler.
	Settings func() any
}

// A Validator is settings that can be wrong even if each field decodes.
type Validator interface {
	// Validate returns the mistakes in the settings, which are at the path. It is
	// called if all fields of the policy could be decoded.
	Validate(at *field.Path) field.ErrorList
}

// A Schemer is settings with a part in the JSON schema of policies.
type Schemer interface {
	// Schema returns the keywords of the settings' schema as a JSON object, with
	// the fields in "properties". It may refer to the "$defs" of schema.json. The
	// caller adds type, description and enabled, and forbids other fields.
	Schema() []byte
}

// An Exampler is settings with a part in the example policy.
type Exampler interface {
	// Example returns the fields as lines of YAML, with their explanations. A
	// policy that has them must load.
	Example() []byte
}

// Backend is the settings of one backend. The zero value is the default.
type Backend struct {
	Enabled Switch `json:"enabled"`

	// Settings is the pointer that Known.Settings returned, decoded. Load sets it
	// for a backend that the policy names and that has settings; otherwise it is
	// nil.
	Settings any `json:"-"`
}

// settings returns a backend's empty settings; nil if it has none.
func settings(known []Known, name string) any {
	for _, k := range known {
		if k.Name == name && k.Settings != nil {
			return k.Settings()
		}
	}
	return nil
}

// names returns the backends' names.
func names(known []Known) []string {
	var names []string
	for _, k := range known {
		names = append(names, k.Name)
	}
	return names
}

// stores returns those of the backends that may have allocations.
func stores(known []Known) []Known {
	return slices.DeleteFunc(slices.Clone(known), func(k Known) bool { return k.Protects })
}
