package policy

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// wrongType returns the mistake with its path and its value. The library says the path
// without the indexes in lists, and the offset at which it found the value. It says no
// offset of a value that decodes itself.
func wrongType(raw json.RawMessage, wrong *json.UnmarshalTypeError, at *field.Path) *field.Error {
	path, value := at, json.Token(nil)
	if wrong.Field != "" {
		path = at.Child(wrong.Field)
	}
	if wrong.Offset == 0 {
		value, _ = tokens([]byte(wrong.Value)).Token() // nil if the type puts another text there
	}
	visit(tokens(raw), at, func(found *field.Path, token json.Token, end int64) {
		if end == wrong.Offset && index.ReplaceAllString(found.String(), "") == index.ReplaceAllString(path.String(), "") {
			path, value = found, token
		}
	})
	if _, isBracket := value.(json.Delim); isBracket || value == nil {
		return field.TypeInvalid(path, field.OmitValueType{}, must(wrong.Type))
	}
	return field.TypeInvalid(path, value, must(wrong.Type))
}

// index is the index in a list, as a path has it.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// blanks returns the fields that are null or an empty string. They do not mean anything in
// a policy, and the library would take a null for an absent field.
func blanks(raw json.RawMessage) field.ErrorList {
	var errs field.ErrorList
	visit(tokens(raw), nil, func(at *field.Path, value json.Token, _ int64) {
		switch value {
		case nil:
			errs = append(errs, field.Required(at, "must not be null; leave the field out for its default"))
		case "":
			errs = append(errs, field.Required(at, "must not be empty"))
		}
	})
	return errs
}

// tokens decodes JSON. Numbers are as they are written.
func tokens(raw []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d
}

// visit calls see for each value of valid JSON, which is at that path, in order. A list or a
// mapping is its bracket, and comes before what it has. The end is the offset behind the value
// or the bracket.
func visit(d *json.Decoder, at *field.Path, see func(at *field.Path, value json.Token, end int64)) {
	value, err := d.Token()
	if err != nil {
		return
	}
	see(at, value, d.InputOffset())
	switch value {
	case json.Delim('{'):
		for d.More() {
			key, _ := d.Token() // always a string
			name, _ := key.(string)
			visit(d, at.Child(name), see)
		}
	case json.Delim('['):
		for i := 0; d.More(); i++ {
			visit(d, at.Index(i), see)
		}
	default:
		return
	}
	_, _ = d.Token() // the other bracket
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
