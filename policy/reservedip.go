package policy

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (r *Protection) validate(found field.ErrorList, at *field.Path) field.ErrorList {
	errs := validateEnum(r.StatefulSets, at.Child("statefulSets"), OrdinalInRange, Ignore)
	seen := map[Resource]bool{}
	for i, reserved := range r.ReservedIPs {
		at := at.Child("reservedIPs").Index(i)
		errs = append(errs, reserved.validate(found, at)...)

		resource := reserved.Resource
		resource.Version = ""
		if resource.Group != "" && resource.Resource != "" && seen[resource] {
			errs = append(errs, field.Duplicate(at.Child("resource"), resource.Resource+"."+resource.Group))
		}
		seen[resource] = true
	}
	return errs
}

func (r *ReservedIP) validate(found field.ErrorList, at *field.Path) field.ErrorList {
	errs := r.Resource.validate(found, at.Child("resource"))
	address, pod, ttl := at.Child("address"), at.Child("pod"), at.Child("ttl")
	if r.Pod == "" && !faulty(found, pod) {
		switch {
		case r.Namespace != "":
			errs = append(errs, field.Required(pod, "must be set where namespace is"))
		case r.Address == "" && !faulty(found, address):
			errs = append(errs, field.Required(at, "must have address or pod"))
		}
	}
	if r.TTL == "" && !faulty(found, ttl) {
		errs = append(errs, field.Required(ttl, "must lead to how long an address is kept"))
	}
	for _, f := range []struct {
		at   *field.Path
		path FieldPath
	}{
		{address, r.Address}, {pod, r.Pod}, {at.Child("namespace"), r.Namespace},
		{ttl, r.TTL}, {at.Child("deletedAt"), r.DeletedAt},
	} {
		if f.path == "" {
			continue
		}
		if _, err := f.path.Parse(); err != nil {
			errs = append(errs, field.Invalid(f.at, f.path, err.Error()))
		}
	}
	return errs
}

// validate has the rules of the API server for the names in the definition of a
// resource. A version need not look like v1: there are some like v1api20240101.
func (r *Resource) validate(found field.ErrorList, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct {
		name, value string
		mistakes    func(string) []string
		must        string
	}{
		{"group", r.Group, validation.IsDNS1123Subdomain, "must be an API group, such as network.example.com"},
		{"version", r.Version, validation.IsDNS1035Label, "must be a version without its group, such as v1 or v1alpha1"},
		{"resource", r.Resource, validation.IsDNS1035Label, "must be the plural in lower case, such as reservedips"},
	} {
		at := at.Child(part.name)
		switch {
		case part.value == "" && !faulty(found, at):
			errs = append(errs, field.Required(at, part.must))
		case part.value != "" && len(part.mistakes(part.value)) > 0:
			errs = append(errs, field.Invalid(at, part.value, part.must))
		}
	}
	return errs
}
