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

// decode sets p from a JSON object. It returns all fields that are empty; if there are
// none, all that are unknown, and the first one of a wrong type of each rule, of each
// backend and of the rest.
//
// Rules and backends are decoded one by one: the library does not say the index in a list
// for a value that decodes itself, such as a Duration, and knows one type for all of a map.
func (p *Policy) decode(raw json.RawMessage, known []Known) field.ErrorList {
	if errs := blanks(raw); len(errs) > 0 {
		return errs
	}
	rules, raw := cut(raw, "rules")
	backends, raw := cut(raw, "backends")
	errs := strictly(raw, p, nil)
	if at := field.NewPath("rules"); rules != nil {
		var items []json.RawMessage
		errs = append(errs, strictly(rules, &items, at)...)
		p.Rules = make([]Rule, len(items))
		for i, item := range items {
			errs = append(errs, strictly(item, &p.Rules[i], at.Index(i))...)
		}
	}
	if at := field.NewPath("backends"); backends != nil {
		var items map[string]json.RawMessage
		errs = append(errs, strictly(backends, &items, at)...)
		p.Backends = make(map[string]Backend, len(items))
		for _, name := range slices.Sorted(maps.Keys(items)) {
			if !slices.Contains(names(known), name) {
				errs = append(errs, field.NotSupported(at.Child(name), name, names(known)))
				continue
			}
			b, mistakes := decodeBackend(items[name], settings(known, name), at.Child(name))
			p.Backends[name], errs = b, append(errs, mistakes...)
		}
	}
	return errs
}

// decodeBackend decodes enabled, and the fields of the settings beside it.
func decodeBackend(raw json.RawMessage, settings any, at *field.Path) (b Backend, errs field.ErrorList) {
	enabled, raw := cut(raw, "enabled")
	if enabled != nil {
		errs = strictly(enabled, &b.Enabled, at.Child("enabled"))
	}
	b.Settings = settings
	if settings == nil {
		settings = new(struct{})
	}
	return b, append(errs, strictly(raw, settings, at, "enabled")...)
}

// cut returns one field of a mapping, nil if there is none, and the mapping without it.
// What is no mapping has no field.
func cut(raw json.RawMessage, name string) (value, rest json.RawMessage) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, raw
	}
	value = fields[name]
	delete(fields, name)
	rest, err := json.Marshal(fields)
	if err != nil {
		return nil, raw
	}
	return value, rest
}

// strictly decodes a JSON value into what v points to. Letter case matters. The fields
// beside v are known, too. It returns all unknown fields, or the first value of a wrong
// type.
func strictly(raw json.RawMessage, v any, at *field.Path, beside ...string) field.ErrorList {
	mistakes, err := kjson.UnmarshalStrict(raw, v)
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		return field.ErrorList{wrongType(raw, wrong, at)}
	}
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())}
	}
	var errs field.ErrorList
	for _, err := range mistakes {
		var unknown kjson.FieldError
		if !errors.As(err, &unknown) {
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, err.Error()))
			continue
		}
		names := fieldsBeside(reflect.TypeOf(v), unknown.FieldPath(), beside)
		errs = append(errs, field.Forbidden(at.Child(unknown.FieldPath()), "unknown field, known are "+strings.Join(names, ", ")))
	}
	return errs
}

// fieldsBeside returns the names of the fields in the struct in which the path ends, which
// may be below t. In t itself, there are some more.
func fieldsBeside(t reflect.Type, path string, more []string) []string {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, t.Kind()) {
		t = t.Elem()
	}
	names := slices.Clone(more)
	if t.Kind() != reflect.Struct {
		return names
	}
	step, rest, _ := strings.Cut(path, ".")
	step, _, _ = strings.Cut(step, "[")
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == step && rest != "" {
			return fieldsBeside(f.Type, rest, nil)
		}
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
