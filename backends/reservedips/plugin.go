package reservedips

import (
	_ "embed"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugin describes the protector. It is not used if the policy names no resource.
func Plugin() plugin.Plugin {
	return plugin.Plugin{
		Name:     Name,
		Summary:  "Objects of your own resources that keep addresses while their pod is gone",
		Settings: func() any { return new(Settings) },
		Access:   access,
		Protect: plugin.With(func(env plugin.Env, s *Settings) (ipam.Protector, error) {
			if len(s.Resources) == 0 {
				return nil, plugin.ErrUnused
			}
			return New(env.Client, s.Resources)
		}),
	}
}

// access has the resources that the policy names.
func access(settings any) plugin.Access {
	s, ok := settings.(*Settings)
	if !ok {
		return nil
	}
	a := make(plugin.Access)
	for _, one := range s.Resources {
		a[plugin.Plan] = append(a[plugin.Plan], plugin.Rule(one.Resource.Group, one.Resource.Resource, "list"))
	}
	return a
}

// Settings are backends.reservedIPs of a policy.
type Settings struct {
	// Resources are those whose objects reserve addresses. None is named twice, not even in two
	// versions: they would have the same objects.
	Resources []Resource `json:"resources,omitzero"`
}

// A Resource says which fields to read in objects that reserve one address, several, or those
// of a pod. At least one of Address and Pod is set. An empty path leads to nothing; after
// validation, all others can be parsed.
type Resource struct {
	Resource ResourceName `json:"resource"`

	// Address leads to an IP address, or to several.
	Address FieldPath `json:"address,omitzero"`

	// Pod leads to the name of a pod, to namespace/name, or to an object with a name and a namespace.
	// Namespace leads to its namespace, and is empty if Pod is. If neither gives a namespace, the pod
	// is in the object's.
	Pod       FieldPath `json:"pod,omitzero"`
	Namespace FieldPath `json:"namespace,omitzero"`

	// TTL is how long the address is kept after the pod is gone, for all objects, or it leads to that:
	// a duration such as 24h, or a number of seconds. An object without one keeps its addresses
	// forever.
	TTL FieldPath `json:"ttl"`

	// DeletedAt leads to when the pod was deleted, in RFC 3339. If it is empty or leads to
	// nothing, the first run that saw the pod gone counts.
	DeletedAt FieldPath `json:"deletedAt,omitzero"`
}

// A ResourceName names a resource of the API server, in a form that the API server
// accepts in a definition.
type ResourceName struct {
	Group    string `json:"group"`    // never the core group, which has no name
	Version  string `json:"version"`  // such as v1alpha1
	Resource string `json:"resource"` // the plural, such as reservedips
}

var (
	//go:embed schema.json
	schemaPart []byte
	//go:embed example.yaml
	examplePart []byte
)

// Schema implements policy.Schemer.
func (*Settings) Schema() []byte { return schemaPart }

// Example implements policy.Exampler.
func (*Settings) Example() []byte { return examplePart }

// Validate implements policy.Validator.
func (s *Settings) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[ResourceName]bool{}
	for i, one := range s.Resources {
		at := at.Child("resources").Index(i)
		errs = append(errs, one.validate(at)...)

		resource := one.Resource
		resource.Version = ""
		if resource.Group != "" && resource.Resource != "" && seen[resource] {
			errs = append(errs, field.Duplicate(at.Child("resource"), resource.Resource+"."+resource.Group))
		}
		seen[resource] = true
	}
	return errs
}

func (r *Resource) validate(at *field.Path) field.ErrorList {
	errs := r.Resource.validate(at.Child("resource"))
	switch {
	case r.Pod != "":
	case r.Namespace != "":
		errs = append(errs, field.Required(at.Child("pod"), "must be set where namespace is"))
	case r.Address == "":
		errs = append(errs, field.Required(at, "must have address or pod"))
	}
	if r.TTL == "" {
		errs = append(errs, field.Required(at.Child("ttl"), "must be the time for which an address is kept, or lead to it"))
	}
	resource := unparsed(*r)
	for _, path := range resource.paths() {
		if err := path.parse(); err != nil {
			errs = append(errs, field.Invalid(at.Child(path.name), path.text, err.Error()))
		}
	}
	return errs
}

// fixedTTL is the form of a TTL of all objects, as in schema.json.
var fixedTTL = regexp.MustCompile(`^(never|[0-9]{1,5}h|[0-9]{1,7}m|[0-9]{1,9}s)$`)

// validate applies the API server's rules for the names in the definition of a resource. A
// version need not look like v1: some look like v1api20240101.
func (r *ResourceName) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct {
		name     string
		value    string
		mistakes func(string) []string
		must     string
	}{
		{"group", r.Group, validation.IsDNS1123Subdomain, "must be an API group, such as network.example.com"},
		{"version", r.Version, validation.IsDNS1035Label, "must be a version without its group, such as v1 or v1alpha1"},
		{"resource", r.Resource, validation.IsDNS1035Label, "must be the plural in lower case, such as reservedips"},
	} {
		at := at.Child(part.name)
		switch {
		case part.value == "":
			errs = append(errs, field.Required(at, part.must))
		case len(part.mistakes(part.value)) > 0:
			errs = append(errs, field.Invalid(at, part.value, part.must))
		}
	}
	return errs
}
