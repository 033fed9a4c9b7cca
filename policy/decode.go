package policy

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// decode sets p from a JSON object. For each backend, and for the rest, it returns the unknown
// fields, or the first value of a wrong type.
func (p *Policy) decode(raw []byte, known []Known) field.ErrorList {
	errs := strictly(raw, p, nil)
	for _, name := range slices.Sorted(maps.Keys(p.Backends)) {
		at := field.NewPath("backends", name)
		if !slices.Contains(names(known), name) {
			errs = append(errs, field.NotSupported(at, name, names(known)))
			continue
		}
		raw, _ := p.Backends[name].Settings.(json.RawMessage)
		b, mistakes := decodeBackend(raw, settings(known, name), at)
		p.Backends[name], errs = b, append(errs, mistakes...)
	}
	return errs
}

// decodeBackend decodes enabled and the fields of the settings.
func decodeBackend(raw json.RawMessage, settings any, at *field.Path) (b Backend, errs field.ErrorList) {
	var fields map[string]json.RawMessage
	if errs = strictly(raw, &fields, at); len(errs) > 0 {
		return b, errs
	}
	if enabled, ok := fields["enabled"]; ok {
		errs = strictly(enabled, &b.Enabled, at.Child("enabled"))
		delete(fields, "enabled")
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return b, append(errs, field.InternalError(at, err))
	}
	if b.Settings = settings; settings == nil {
		settings = new(struct{})
	}
	return b, append(errs, strictly(rest, settings, at, "enabled")...)
}

// strictly decodes a JSON value into what v points to. Letter case matters. The fields in beside
// are known, too. It returns all unknown fields, or the first value of a wrong type.
func strictly(raw []byte, v any, at *field.Path, beside ...string) field.ErrorList {
	mistakes, err := kjson.UnmarshalStrict(raw, v)
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		if wrong.Field != "" {
			at = at.Child(wrong.Field)
		}
		return field.ErrorList{field.TypeInvalid(at, field.OmitValueType{}, must(wrong.Type)+", not "+wrong.Value)}
	}
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())}
	}
	var errs field.ErrorList
	for _, err := range mistakes {
		if unknown := kjson.FieldError(nil); errors.As(err, &unknown) {
			errs = append(errs, unknownField(at, unknown.FieldPath(), reflect.TypeOf(v), beside))
		}
	}
	return errs
}

// unknownField returns the mistake for a field at a path below a value of type t, with the likely
// names.
func unknownField(at *field.Path, path string, t reflect.Type, beside []string) *field.Error {
	says := "unknown field"
	name := path[strings.LastIndex(path, ".")+1:]
	if meant := printable.Meant(name, append(fieldsAt(path, t), beside...)); meant != "" {
		says += "; " + meant
	}
	return field.Forbidden(at.Child(path), says)
}

// fieldsAt returns the fields of the struct in which a path below a value of type t ends.
func fieldsAt(path string, t reflect.Type) (names []string) {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, t.Kind()) {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	step, rest, deeper := strings.Cut(path, ".")
	step, _, _ = strings.Cut(step, "[")
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case deeper && name == step:
			return fieldsAt(rest, f.Type)
		case !deeper && name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}

// blanks returns the fields that are null or an empty string. These mean nothing in a policy, and
// the library would take a null for an absent field.
func blanks(value any, at *field.Path) (errs field.ErrorList) {
	switch value := value.(type) {
	case nil:
		return field.ErrorList{field.Required(at, "must not be null; leave the field out for its default")}
	case string:
		if value == "" {
			return field.ErrorList{field.Required(at, "must not be empty")}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			errs = append(errs, blanks(value[name], at.Child(name))...)
		}
	case []any:
		for i, item := range value {
			errs = append(errs, blanks(item, at.Index(i))...)
		}
	}
	return errs
}

// must says what a value of the type must be. YAML reads an unquoted no, 007 or 1e3 as
// something other than a string.
func must(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Duration]():
		return `must be a duration in units from h to ns, such as "15m" or "1h30m", and below 100000h`
	case reflect.TypeFor[Switch]():
		return "must be auto, true or false, the last two without quotes"
	}
	return map[reflect.Kind]string{
		reflect.Bool:    "must be true or false",
		reflect.Int:     "must be a whole number",
		reflect.Float64: "must be a number",
		reflect.String:  "must be a string, in quotes if YAML takes it for something else",
		reflect.Slice:   "must be a list",
		reflect.Map:     "must be a mapping",
		reflect.Struct:  "must be a mapping",
	}[t.Kind()]
}
