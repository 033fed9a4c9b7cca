package policy

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Known is a backend that a policy may name.
type Known struct {
	Name    string
	Summary string // what the backend holds, in one line

	// Settings returns a new pointer to the struct into which the fields of
	// backends.<name> are decoded, all but enabled. Nil means that there is no
	// other field. Fields are matched by their json tags, strictly, also in
	// structs, lists and maps below. No message shows a value of a field that is
	// tagged `policy:"secret"`.
	//
	// The pointer may implement Validator, Hinter, Schemer and Exampler.
	Settings func() any
}

// A Validator is settings that can be wrong although each field can be decoded.
type Validator interface {
	// Validate returns the mistakes in the settings, which stand at the path. A
	// mistaken field is zero; faulty reports whether a mistake was already found
	// at a field, below it, or at the field in which it stands.
	Validate(at *field.Path, faulty func(*field.Path) bool) field.ErrorList
}

// A Hinter is settings that explain an unknown field below them.
type Hinter interface {
	// Hint ends the message about the unknown field; empty means no hint.
	Hint(name string) string
}

// A Schemer is settings that have a part in the JSON schema of policies.
type Schemer interface {
	// Schema returns the keywords of the settings' schema as a JSON object, with
	// the fields in "properties". It may refer to the "$defs" of schema.json.
	// Type, description, enabled, and that there are no other fields, are added.
	Schema() []byte
}

// An Exampler is settings that have a part in the example of a policy.
type Exampler interface {
	// Example returns the fields as lines of YAML, with their explanations. A
	// policy that has them must load.
	Example() []byte
}

// Backend is the settings of one backend. The zero value is the default.
type Backend struct {
	Enabled Switch `json:"enabled"`

	// Settings is the pointer that Known.Settings returned, decoded. Load sets it
	// for a backend that the policy names and that has settings; elsewhere it is
	// nil.
	Settings any `json:"-"`
}

// MarshalJSON writes the settings and enabled side by side, as Load reads them.
func (b Backend) MarshalJSON() ([]byte, error) {
	fields := make(map[string]any)
	if b.Settings != nil {
		data, err := json.Marshal(b.Settings)
		if err != nil {
			return nil, err
		}
		var settings map[string]json.RawMessage
		if err := json.Unmarshal(data, &settings); err != nil {
			return nil, err
		}
		for name, value := range settings {
			fields[name] = value
		}
	}
	fields["enabled"] = b.Enabled
	return json.Marshal(fields)
}

// settings returns the empty settings of the backend of that name; nil where
// there are none.
func settings(known []Known, name string) any {
	for _, k := range known {
		if k.Name == name && k.Settings != nil {
			return k.Settings()
		}
	}
	return nil
}

// names are those of the backends.
func names(known []Known) []string {
	var names []string
	for _, k := range known {
		names = append(names, k.Name)
	}
	return names
}

func (d *decoder) decodeBackends(raw json.RawMessage, v *map[string]Backend, at *field.Path) field.ErrorList {
	fields, errs := decodeObject(raw, at)
	*v = make(map[string]Backend, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		b := Backend{Settings: settings(d.known, name)}
		errs = append(errs, d.decodeBackend(fields[name], &b, at.Key(name))...)
		(*v)[name] = b
	}
	return errs
}

// decodeBackend decodes enabled, and beside it the fields of the settings.
func (d *decoder) decodeBackend(raw json.RawMessage, b *Backend, at *field.Path) field.ErrorList {
	if string(raw) == "null" {
		return d.decode(raw, reflect.ValueOf(b).Elem(), at)
	}
	structs := []reflect.Value{reflect.ValueOf(b).Elem()}
	if b.Settings != nil {
		structs = append(structs, reflect.ValueOf(b.Settings).Elem())
	}
	fields, errs := decodeObject(raw, at)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if owner := d.owner(name); owner != "" && !hasField(structs, name) {
			errs = append(errs, field.Forbidden(at.Child(name), "only the backend "+owner+" has it"))
			delete(fields, name)
		}
	}
	if hinter, ok := b.Settings.(Hinter); ok {
		d.hint = hinter.Hint
		defer func() { d.hint = nil }()
	}
	return append(errs, d.decodeFields(fields, at, structs...)...)
}

// owner returns the first backend whose settings have the field; empty where
// none has.
func (d *decoder) owner(name string) string {
	for _, k := range d.known {
		if k.Settings != nil && hasField([]reflect.Value{reflect.ValueOf(k.Settings()).Elem()}, name) {
			return k.Name
		}
	}
	return ""
}

func hasField(structs []reflect.Value, name string) bool {
	for _, v := range structs {
		for f := range v.Fields() {
			if jsonName(f) == name {
				return true
			}
		}
	}
	return false
}
