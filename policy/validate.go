package policy

import (
	"maps"
	"net/netip"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// patternCharacters are the characters of the names of namespaces, pods and
// backends, and of globs. A pattern with any other character, such as
// "Kube-System", "a,b", "!a" or "{a,b}", does not match what its author meant, and
// would protect nothing.
const patternCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-." + `*?[]^\`

// validate returns the mistakes that decoding found, followed by those in the
// values of a policy with its defaults.
func (p *Policy) validate(backends []string, found field.ErrorList) field.ErrorList {
	errs := slices.Clone(found)
	errs = append(errs, validateDuration(p.GracePeriod, field.NewPath("gracePeriod"))...)
	errs = append(errs, validateDuration(p.MinAge, field.NewPath("minAge"))...)

	namespaces := field.NewPath("namespaces")
	if len(p.Namespaces.Include) == 0 {
		errs = append(errs, field.Required(namespaces.Child("include"),
			"must have a pattern; leave the field out for all namespaces"))
	}
	errs = append(errs, validatePatterns(p.Namespaces.Include, namespaces.Child("include"))...)
	errs = append(errs, validatePatterns(p.Namespaces.Exclude, namespaces.Child("exclude"))...)

	for i, r := range p.Rules {
		errs = append(errs, r.validate(backends, found, field.NewPath("rules").Index(i))...)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Backends)) {
		b, at := p.Backends[name], field.NewPath("backends").Key(name)
		if !slices.Contains(backends, name) {
			errs = append(errs, field.NotSupported(at, name, backends))
		}
		errs = append(errs, b.validate(name, found, at)...)
	}

	pods := field.NewPath("pods")
	errs = append(errs, validateEnum(p.Pods.Finished, pods.Child("finished"), Hold, Release)...)
	errs = append(errs, validateEnum(p.Pods.Superseded, pods.Child("superseded"), Hold, Release)...)
	errs = append(errs, validateEnum(p.Pods.Unnamed, pods.Child("unnamed"), Hold, Release)...)
	errs = append(errs, validateEnum(p.Nodes.Unreachable, field.NewPath("nodes", "unreachable"), Hold, Release)...)
	errs = append(errs, p.Limits.validate(field.NewPath("limits"))...)
	errs = append(errs, p.Protection.validate(found, field.NewPath("protection"))...)
	return append(errs, p.Journal.validate(field.NewPath("journal"))...)
}

func (r *Rule) validate(backends []string, found field.ErrorList, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	m, match := r.Match, at.Child("match")
	// If decoding found a mistake in the rule, its author may have meant it to
	// match something.
	if len(m.Namespaces)+len(m.Pods)+len(m.Backends) == 0 && !faulty(found, at) {
		errs = append(errs, field.Required(match, "must have namespaces, pods or backends; "+
			"set the terms of all allocations outside the rules"))
	}
	errs = append(errs, validatePatterns(m.Namespaces, match.Child("namespaces"))...)
	errs = append(errs, validatePatterns(m.Pods, match.Child("pods"))...)
	errs = append(errs, validatePatterns(m.Backends, match.Child("backends"))...)
	for i, pattern := range m.Backends {
		known := func(name string) bool { return matchAny([]string{pattern}, name) != no }
		if pattern != "" && !slices.ContainsFunc(backends, known) {
			errs = append(errs, field.NotSupported(match.Child("backends").Index(i), pattern, backends))
		}
	}
	errs = append(errs, validateDuration(r.GracePeriod, at.Child("gracePeriod"))...)
	return append(errs, validateDuration(r.MinAge, at.Child("minAge"))...)
}

// validate looks at the settings of the backend of that name.
func (b *Backend) validate(name string, found field.ErrorList, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	datastore, etcd := at.Child("datastore"), at.Child("etcd")
	hasEtcd := !reflect.ValueOf(b.Etcd).IsZero()
	if name != "calico" {
		if b.Datastore != "" {
			errs = append(errs, field.Forbidden(datastore, "only the backend calico has it"))
		}
		if hasEtcd {
			errs = append(errs, field.Forbidden(etcd, "only the backend calico has it"))
		}
		return errs
	}
	if b.Datastore != "" {
		errs = append(errs, validateEnum(b.Datastore, datastore, DatastoreAuto, DatastoreKubernetes, DatastoreEtcd)...)
	}
	if b.Datastore == DatastoreKubernetes && hasEtcd {
		errs = append(errs, field.Forbidden(etcd, "must not be set where the datastore is kubernetes"))
	}
	return append(errs, b.Etcd.validate(found, etcd)...)
}

func (e *Etcd) validate(found field.ErrorList, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	endpoints := at.Child("endpoints")
	if e.Endpoints != nil && len(e.Endpoints) == 0 {
		errs = append(errs, field.Required(endpoints, "must have an endpoint; leave the field out for those of ETCD_ENDPOINTS"))
	}
	for i, endpoint := range e.Endpoints {
		switch {
		case endpoint == "": // decoding found fault with it
		case strings.Contains(endpoint, "@"):
			errs = append(errs, field.Invalid(endpoints.Index(i), endpoint,
				"must not have a user or a password; there are username and passwordFile"))
		case !isEndpoint(endpoint):
			errs = append(errs, field.Invalid(endpoints.Index(i), endpoint,
				"must be http://host:port or https://host:port, and nothing else"))
		}
	}
	for _, pair := range []struct{ name, value, needs, other string }{
		{"passwordFile", e.PasswordFile, "username", e.Username},
		{"certFile", e.CertFile, "keyFile", e.KeyFile},
		{"keyFile", e.KeyFile, "certFile", e.CertFile},
	} {
		needed := at.Child(pair.needs)
		if pair.value != "" && pair.other == "" && !faulty(found, needed) {
			errs = append(errs, field.Required(needed, "must be set where "+pair.name+" is"))
		}
	}
	return errs
}

// endpointForm is the form of an endpoint. The schema has it too.
var endpointForm = regexp.MustCompile(`^https?://([A-Za-z0-9._-]+|\[([0-9A-Fa-f:.]+)\]):([1-9][0-9]{0,4})$`)

func isEndpoint(text string) bool {
	parts := endpointForm.FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	ip, port := parts[2], parts[3]
	if ip != "" {
		if addr, err := netip.ParseAddr(ip); err != nil || !addr.Is6() {
			return false
		}
	}
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

// faulty reports whether one of the mistakes is at the field, below it, or at a
// field that contains it.
func faulty(found field.ErrorList, at *field.Path) bool {
	return slices.ContainsFunc(found, func(err *field.Error) bool {
		return within(err.Field, at.String()) || within(at.String(), err.Field)
	})
}

// within reports whether the path of fields is outer, or continues it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func (l *Limits) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if *l.MaxReleases < 0 {
		errs = append(errs, field.Invalid(at.Child("maxReleases"), *l.MaxReleases, "must not be negative; 0 means no limit"))
	}
	for _, part := range []struct {
		name  string
		value float64
	}{{"maxFraction", *l.MaxFraction}, {"maxPodDrop", *l.MaxPodDrop}} {
		if part.value <= 0 || part.value > 1 {
			errs = append(errs, field.Invalid(at.Child(part.name), part.value, "must be above 0 and at most 1"))
		}
	}
	if *l.MinEntries < 0 {
		errs = append(errs, field.Invalid(at.Child("minEntries"), *l.MinEntries, "must not be negative"))
	}
	return errs
}

func (j *Journal) validate(at *field.Path) field.ErrorList {
	if *j.Keep < 1 || *j.Keep > 100 {
		return field.ErrorList{field.Invalid(at.Child("keep"), *j.Keep, "must be from 1 to 100")}
	}
	return nil
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

func validatePatterns(patterns []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range patterns {
		foreign := func(r rune) bool { return !strings.ContainsRune(patternCharacters, r) }
		if strings.ContainsFunc(pattern, foreign) {
			errs = append(errs, field.Invalid(at.Index(i), pattern,
				`must be a lower-case name, in which * ? [a-z] [^a-z] and \ have their meaning as in a shell`))
		} else if _, err := path.Match(pattern, ""); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), pattern, "must be a glob pattern: "+err.Error()))
		}
	}
	return errs
}
