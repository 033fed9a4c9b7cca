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

// decode sets v from one JSON value. It returns every mistake with its path, and
// leaves a mistaken value zero. A JSON decoder would return only the first value of
// a wrong type, without its path.
//
// Fields are matched by their json tags, and letter case matters. Null and the
// empty string are mistakes, because they do not mean anything in a policy.
func decode(raw json.RawMessage, v reflect.Value, at *field.Path) field.ErrorList {
	if string(raw) == "null" {
		return field.ErrorList{field.Required(at, "must not be null; leave the field out for its default")}
	}
	if _, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		return decodeScalar(raw, v, at)
	}
	switch v.Kind() {
	case reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		errs := decode(raw, target.Elem(), at)
		if len(errs) == 0 {
			v.Set(target)
		}
		return errs
	case reflect.Struct:
		return decodeStruct(raw, v, at)
	case reflect.Map:
		return decodeMap(raw, v, at)
	case reflect.Slice:
		return decodeSlice(raw, v, at)
	default:
		return decodeScalar(raw, v, at)
	}
}

func decodeStruct(raw json.RawMessage, v reflect.Value, at *field.Path) field.ErrorList {
	fields, errs := decodeObject(raw, at)
	var known []string
	for f, target := range v.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, name)
		if value, ok := fields[name]; ok {
			errs = append(errs, decode(value, target, at.Child(name))...)
			delete(fields, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		errs = append(errs, field.Forbidden(at.Child(name),
			"unknown field, known are "+strings.Join(known, ", ")+hints[name]))
	}
	return errs
}

// hints end the message about an unknown field of that name.
var hints = map[string]string{
	"password": "; a policy is no place for a password: " +
		"name a file that has it in passwordFile, or set ETCD_PASSWORD",
}

func decodeMap(raw json.RawMessage, v reflect.Value, at *field.Path) field.ErrorList {
	fields, errs := decodeObject(raw, at)
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := reflect.New(v.Type().Elem()).Elem()
		errs = append(errs, decode(fields[name], value, at.Key(name))...)
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

func decodeSlice(raw json.RawMessage, v reflect.Value, at *field.Path) field.ErrorList {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return field.ErrorList{field.TypeInvalid(at, valueOf(raw), "must be a list")}
	}
	var errs field.ErrorList
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		errs = append(errs, decode(item, v.Index(i), at.Index(i))...)
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
