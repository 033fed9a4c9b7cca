package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// decode sets p from the fields of a document, and returns all mistakes in their names and types.
// It leaves out what is mistaken, so that the rest can be validated.
func (p *Policy) decode(fields map[string]any, known []Known) field.ErrorList {
	f := form{known: known}
	if err := convert(f.check(fields, reflect.TypeFor[Policy](), nil), p); err != nil {
		f.mistake(field.InternalError(nil, err))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Backends)) {
		b, err := decodeBackend(p.Backends[name], settings(known, name))
		if err != nil {
			f.mistake(field.InternalError(field.NewPath("backends", name), err))
		}
		p.Backends[name] = b
	}
	return f.errs
}

// decodeBackend decodes the JSON of a backend, which has no mistake, into enabled and the settings.
func decodeBackend(b Backend, settings any) (Backend, error) {
	raw, _ := b.Settings.(json.RawMessage)
	var fields map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields); err != nil {
		return Backend{}, err
	}
	enabled := fields["enabled"]
	delete(fields, "enabled")
	b = Backend{Settings: settings}
	if enabled != nil {
		if err := convert(enabled, &b.Enabled); err != nil {
			return b, err
		}
	}
	if settings == nil {
		return b, nil
	}
	return b, convert(fields, settings)
}

// convert decodes a value of a document into what v points to. Letter case matters.
func convert(value, v any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(raw, v)
	return cmp.Or(err, errors.Join(unknown...))
}

// A form finds the mistakes in the names and types of the fields of a document.
type form struct {
	known []Known
	errs  field.ErrorList
}

func (f *form) mistake(err *field.Error) { f.errs = append(f.errs, err) }

// check returns a value for a field of the type without what is mistaken in it; nil if it is a
// mistake itself. An item of a list becomes nil, so that the others keep their places. What is
// null or empty is left out without a message: see blanks.
func (f *form) check(value any, t reflect.Type, at *field.Path) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	decodesItself := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		if v == "" {
			return nil
		}
	case map[string]any:
		switch {
		case decodesItself:
		case t == reflect.TypeFor[map[string]Backend]():
			return f.each(v, at, f.backend)
		case t.Kind() == reflect.Map:
			return f.each(v, at, func(_ string, value any, at *field.Path) any { return f.check(value, t.Elem(), at) })
		case t.Kind() == reflect.Struct:
			return f.fields(v, fieldsOf(t), at)
		}
	case []any:
		if t.Kind() == reflect.Slice && !decodesItself {
			good := make([]any, len(v))
			for i, item := range v {
				good[i] = f.check(item, t.Elem(), at.Index(i))
			}
			return good
		}
	}
	err := convert(value, reflect.New(t).Interface())
	wrong := new(json.UnmarshalTypeError)
	switch {
	case errors.As(err, &wrong):
		f.mistake(field.TypeInvalid(at, field.OmitValueType{}, must(wrong.Type)+", not "+wrong.Value))
	case err != nil:
		f.mistake(field.Invalid(at, field.OmitValueType{}, err.Error()))
	default:
		return value
	}
	return nil
}

// each returns what do returns for each value of a mapping, without the nils.
func (*form) each(values map[string]any, at *field.Path, do func(name string, value any, at *field.Path) any) map[string]any {
	good := make(map[string]any, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if v := do(name, values[name], at.Child(name)); v != nil {
			good[name] = v
		}
	}
	return good
}

// fields checks the fields of a struct with these types.
func (f *form) fields(values map[string]any, types map[string]reflect.Type, at *field.Path) any {
	return f.each(values, at, func(name string, value any, at *field.Path) any {
		if t, ok := types[name]; ok {
			return f.check(value, t, at)
		}
		says := "unknown field"
		if meant := printable.Meant(name, slices.Collect(maps.Keys(types))); meant != "" {
			says += "; " + meant
		}
		f.mistake(field.Forbidden(at, says))
		return nil
	})
}

// backend checks enabled and the settings of a backend.
func (f *form) backend(name string, value any, at *field.Path) any {
	values, ok := value.(map[string]any)
	switch {
	case !slices.Contains(names(f.known), name):
		f.mistake(field.NotSupported(at, name, names(f.known)))
		return nil
	case !ok:
		return f.check(value, reflect.TypeFor[map[string]any](), at)
	}
	types := make(map[string]reflect.Type)
	if s := settings(f.known, name); s != nil {
		types = fieldsOf(reflect.TypeOf(s).Elem())
	}
	types["enabled"] = reflect.TypeFor[Switch]()
	return f.fields(values, types, at)
}

// fieldsOf returns the types of the fields of a struct, by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	types := make(map[string]reflect.Type)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" && (name != "" || !f.Anonymous) {
			types[cmp.Or(name, f.Name)] = f.Type
		}
	}
	return types
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

// apart returns the errors about fields that are neither among those of the others, nor above or
// below them: what is wrong with these may only follow from the others.
func apart(errs, others field.ErrorList) field.ErrorList {
	wrong, above := make(map[string]bool), make(map[string]bool)
	for _, other := range others {
		wrong[other.Field] = true
		for at := range upwards(other.Field) {
			above[at] = true
		}
	}
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		for at := range upwards(err.Field) {
			if wrong[at] {
				return true
			}
		}
		return above[err.Field]
	})
}

// upwards yields the path of a field, and those of the fields that it is in.
func upwards(at string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at != "" && yield(at) {
			at = at[:max(0, strings.LastIndexAny(at, ".["))]
		}
	}
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
