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
)

// A decoder decodes one policy.
type decoder struct {
	known []Known

	// hint ends the message about an unknown field of that name, if it is not
	// nil: that of the settings which are being decoded.
	hint func(name string) string

	// secrets are the paths of the fields whose values no message shows.
	secrets []string
}

// decode sets v from one JSON value. It returns every mistake with its path, and
// leaves a mistaken value zero. A JSON decoder would return only the first value of
// a wrong type, without its path.
//
// Fields are matched by their json tags, and letter case matters. Null and the
// empty string are mistakes, because they do not mean anything in a policy.
func (d *decoder) decode(raw json.RawMessage, v reflect.Value, at *field.Path) field.ErrorList {
	if string(raw) == "null" {
		return field.ErrorList{field.Required(at, "must not be null; leave the field out for its default")}
	}
	if _, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		return decodeScalar(raw, v, at)
	}
	if backends, ok := v.Addr().Interface().(*map[string]Backend); ok {
		return d.decodeBackends(raw, backends, at)
	}
	switch v.Kind() {
	case reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		errs := d.decode(raw, target.Elem(), at)
		if len(errs) == 0 {
			v.Set(target)
		}
		return errs
	case reflect.Struct:
		fields, errs := decodeObject(raw, at)
		return append(errs, d.decodeFields(fields, at, v)...)
	case reflect.Map:
		return d.decodeMap(raw, v, at)
	case reflect.Slice:
		return d.decodeSlice(raw, v, at)
	default:
		return decodeScalar(raw, v, at)
	}
}

// decodeFields sets the fields of the structs, which stand side by side in one
// mapping.
func (d *decoder) decodeFields(fields map[string]json.RawMessage, at *field.Path, structs ...reflect.Value) field.ErrorList {
	var errs field.ErrorList
	var known []string
	for _, v := range structs {
		for f, target := range v.Fields() {
			name := jsonName(f)
			if name == "" {
				continue
			}
			known = append(known, name)
			if f.Tag.Get("policy") == "secret" {
				d.secrets = append(d.secrets, at.Child(name).String())
			}
			if value, ok := fields[name]; ok {
				errs = append(errs, d.decode(value, target, at.Child(name))...)
				delete(fields, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		message := "unknown field, known are " + strings.Join(known, ", ")
		if d.hint != nil {
			if hint := d.hint(name); hint != "" {
				message += "; " + hint
			}
		}
		errs = append(errs, field.Forbidden(at.Child(name), message))
	}
	return errs
}

// jsonName returns the name by which a policy has the field; empty where it
// has not.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

func (d *decoder) decodeMap(raw json.RawMessage, v reflect.Value, at *field.Path) field.ErrorList {
	fields, errs := decodeObject(raw, at)
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := reflect.New(v.Type().Elem()).Elem()
		errs = append(errs, d.decode(fields[name], value, at.Key(name))...)
		v.SetMapIndex(reflect.ValueOf(name), value)
	}
	return errs
}

func decodeObject(raw json.RawMessage, at *field.Path) (map[string]json.RawMessage, field.ErrorList) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, field.ErrorList{field.TypeInvalid(at, valueOf(raw), "must be a mapping")}
	}
	return fields, nil
}

func (d *decoder) decodeSlice(raw json.RawMessage, v reflect.Value, at *field.Path) field.ErrorList {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return field.ErrorList{field.TypeInvalid(at, valueOf(raw), "must be a list")}
	}
	var errs field.ErrorList
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		errs = append(errs, d.decode(item, v.Index(i), at.Index(i))...)
	}
	return errs
}

func decodeScalar(raw json.RawMessage, v reflect.Value, at *field.Path) field.ErrorList {
	if string(raw) == `""` {
		return field.ErrorList{field.Required(at, "must not be empty")}
	}
	_, err := kjson.UnmarshalStrict(raw, v.Addr().Interface())
	if err == nil {
		return nil
	}
	must := err.Error()
	if wrongType := new(json.UnmarshalTypeError); errors.As(err, &wrongType) {
		must = musts[v.Kind()]
	}
	return field.ErrorList{field.TypeInvalid(at, valueOf(raw), must)}
}

// musts say what a field of a kind must be. YAML reads an unquoted no, 007 or 1e3
// as something other than a string.
var musts = map[reflect.Kind]string{
	reflect.Bool:    "must be true or false",
	reflect.Int:     "must be a whole number",
	reflect.Float64: "must be a number",
	reflect.String:  "must be a string, in quotes if YAML takes it for something else",
}

// valueOf returns a JSON value as an error message shows it. It omits lists and
// mappings.
func valueOf(raw json.RawMessage) any {
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		return field.OmitValueType{}
	}
	switch value.(type) {
	case map[string]any, []any:
		return field.OmitValueType{}
	default:
		return value
	}
}
