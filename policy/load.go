package policy

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// MaxSize is the largest policy that Load reads, in bytes: some 2,000 rules. A ConfigMap
// could hold four times as much.
const MaxSize = 256 << 10

// An Error lists the mistakes that Load found in one policy.
type Error struct {
	// Messages are the mistakes, each with the path of its field if it has one.
	// Messages is never empty. A message may quote any text of the policy.
	Messages []string

	// NotYAML says that the text is no mapping in YAML, so no version of the program understands it.
	// Any other mistake may be none for a newer version.
	NotYAML bool
}

// Error returns the messages, one per line.
func (e *Error) Error() string { return strings.Join(e.Messages, "\n") }

// Load reads one policy in YAML or JSON. An unknown backend is a mistake. Load returns the
// complete, valid policy, or the zero Policy and an *Error.
//
// The *Error has all mistakes, unless the document is not YAML, has a key twice, or is of another
// kind or version: every other field may then mean something else. Values are only checked if every
// field has a known name and the right type.
func Load(data []byte, known []Known) (Policy, error) {
	raw, mistake := toJSON(data)
	if mistake != nil {
		return Policy{}, refuse(mistake)
	}
	var fields map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields); err != nil { // such as one that is nested too deeply
		return Policy{}, refuse(&Error{Messages: []string{err.Error()}})
	}
	var p Policy
	errs := checkHeader(fields)
	if len(errs) == 0 {
		f := form{known: known}
		f.read(fields, reflect.ValueOf(&p).Elem(), nil)
		errs = f.errs
	}
	if len(errs) == 0 {
		p.setDefaults()
		errs = p.validate(names(stores(known)))
	}
	if len(errs) == 0 {
		return p, nil
	}
	mistake = new(Error)
	for _, err := range errs {
		mistake.Messages = append(mistake.Messages, err.Error())
	}
	return Policy{}, refuse(mistake)
}

// refuse returns the Error without the userinfo of URLs: a password may have been put where it does
// not belong, and messages go to a log.
func refuse(e *Error) *Error {
	for i, m := range e.Messages {
		e.Messages[i] = urlUser.ReplaceAllString(m, "://...@")
	}
	return e
}

var urlUser = regexp.MustCompile(`(?s)://.*@`)

// toJSON returns the only document in data, a mapping, as JSON, or an Error that says why it cannot.
// Each key that a mapping has twice gets its own message.
func toJSON(data []byte) ([]byte, *Error) {
	if len(data) > MaxSize {
		return nil, &Error{Messages: []string{fmt.Sprintf("it is larger than %d bytes", MaxSize)}}
	}
	if !utf8.Valid(data) { // a parser of YAML takes UTF-16, too, and a ConfigMap does not
		return nil, &Error{Messages: []string{"it must be UTF-8"}}
	}
	var document any
	raw, err := yaml.YAMLToJSONStrict(data)
	if twice := new(goyaml.TypeError); errors.As(err, &twice) {
		return nil, &Error{Messages: twice.Errors}
	}
	if err != nil { // JSON does not have each value of YAML, such as .nan
		return nil, &Error{Messages: []string{cmp.Or(tabbed(data, err), err.Error())}, NotYAML: goyaml.Unmarshal(data, &document) != nil}
	}
	// The parser stops at the end of the first document.
	documents := goyaml.NewDecoder(bytes.NewReader(data))
	for range 2 {
		err = documents.Decode(&document)
	}
	switch {
	case !errors.Is(err, io.EOF):
		return nil, &Error{Messages: []string{"it must be a single YAML document, and has several"}}
	case string(raw) == "null":
		message := fmt.Sprintf("it must not be empty: apiVersion must be %q and kind %q", APIVersion, Kind)
		return nil, &Error{Messages: []string{message}, NotYAML: true}
	case raw[0] != '{':
		return nil, &Error{Messages: []string{"it must be a mapping"}, NotYAML: true}
	}
	return raw, nil
}

// The parser's errors about a tab in the indentation, and how such a line begins.
var (
	tabError  = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?found (?:a tab character|character that cannot start any token)`)
	tabIndent = regexp.MustCompile(`^[ -]*\t`)
)

// tabbed returns the message for a tab in the indentation; empty if err is about something else.
func tabbed(data []byte, err error) string {
	found := tabError.FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}
	number, _ := strconv.Atoi(cmp.Or(found[1], "1")) // the parser omits line 1
	lines := bytes.Split(data, []byte("\n"))
	if number > len(lines) || !tabIndent.Match(lines[number-1]) {
		return ""
	}
	return fmt.Sprintf("line %d: YAML forbids tabs for indentation, use spaces", number)
}

// checkHeader checks only apiVersion and kind.
func checkHeader(fields map[string]any) (errs field.ErrorList) {
	for _, h := range []struct{ name, want string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		switch got, ok := fields[h.name]; {
		case !ok || got == nil:
			errs = append(errs, field.Required(field.NewPath(h.name), fmt.Sprintf("must be %q", h.want)))
		case got != h.want:
			errs = append(errs, field.NotSupported(field.NewPath(h.name), got, []string{h.want}))
		}
	}
	return errs
}

// A form reads the fields of a document, and collects the mistakes in their names and types.
type form struct {
	known []Known
	errs  field.ErrorList
}

func (f *form) mistake(err *field.Error) { f.errs = append(f.errs, err) }

// read sets a field to a value of the document. Null and an empty string mean nothing in a policy, and
// the library would take a null for an absent field.
func (f *form) read(value any, into reflect.Value, at *field.Path) {
	switch {
	case value == nil:
		f.mistake(field.Required(at, "must not be null; leave the field out for its default"))
		return
	case value == "":
		f.mistake(field.Required(at, "must not be empty"))
		return
	case into.Kind() == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		f.read(value, into.Elem(), at)
		return
	}
	_, decodesItself := into.Addr().Interface().(json.Unmarshaler)
	switch v := value.(type) {
	case map[string]any:
		switch {
		case decodesItself:
		case into.Type() == reflect.TypeFor[map[string]Backend]():
			into.Set(reflect.ValueOf(f.backends(v, at)))
			return
		case into.Kind() == reflect.Map && into.Type().Key().Kind() == reflect.String:
			into.Set(reflect.MakeMap(into.Type()))
			for _, name := range slices.Sorted(maps.Keys(v)) {
				item := reflect.New(into.Type().Elem()).Elem()
				f.read(v[name], item, at.Child(name))
				into.SetMapIndex(reflect.ValueOf(name).Convert(into.Type().Key()), item)
			}
			return
		case into.Kind() == reflect.Struct:
			f.fields(v, fieldsOf(into), at)
			return
		}
	case []any:
		if into.Kind() == reflect.Slice && !decodesItself {
			into.Set(reflect.MakeSlice(into.Type(), len(v), len(v)))
			for i, item := range v {
				f.read(item, into.Index(i), at.Index(i))
			}
			return
		}
	}
	raw, _ := json.Marshal(value) // it was JSON
	err := json.Unmarshal(raw, into.Addr().Interface())
	wrong := new(json.UnmarshalTypeError)
	switch {
	case errors.As(err, &wrong):
		f.mistake(field.TypeInvalid(at, field.OmitValueType{}, mustBe(wrong.Type)+", not "+wrong.Value))
	case err != nil:
		f.mistake(field.Invalid(at, field.OmitValueType{}, err.Error()))
	}
}

// fields reads the fields of a mapping into those with the same names.
func (f *form) fields(values map[string]any, into map[string]reflect.Value, at *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if to, ok := into[name]; ok {
			f.read(values[name], to, at.Child(name))
			continue
		}
		says := "unknown field"
		if meant := printable.Meant(name, slices.Collect(maps.Keys(into))); meant != "" {
			says += "; " + meant
		}
		f.mistake(field.Forbidden(at.Child(name), says))
	}
}

// backends reads enabled and the settings of each backend.
func (f *form) backends(values map[string]any, at *field.Path) map[string]Backend {
	read := make(map[string]Backend)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names(f.known), name) {
			f.mistake(field.NotSupported(at.Child(name), name, names(f.known)))
			continue
		}
		fields, ok := values[name].(map[string]any)
		if !ok {
			f.read(values[name], reflect.ValueOf(&fields).Elem(), at.Child(name))
			continue
		}
		b := Backend{Settings: settings(f.known, name)}
		into := make(map[string]reflect.Value)
		if b.Settings != nil {
			into = fieldsOf(reflect.ValueOf(b.Settings).Elem())
		}
		into["enabled"] = reflect.ValueOf(&b.Enabled).Elem()
		f.fields(fields, into, at.Child(name))
		read[name] = b
	}
	return read
}

// fieldsOf returns the fields of a struct by their names in JSON.
func fieldsOf(s reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value)
	for _, f := range reflect.VisibleFields(s.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" && (name != "" || !f.Anonymous) {
			fields[cmp.Or(name, f.Name)] = s.FieldByIndex(f.Index)
		}
	}
	return fields
}

// mustBe says what a value of the type must be. YAML reads an unquoted no, 007 or 1e3 as
// something other than a string.
func mustBe(t reflect.Type) string {
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

var (
	//go:embed example.yaml
	example string
	//go:embed schema.json
	schema []byte
)

// exampleBackends is the line of example.yaml below which the backends go.
const exampleBackends = "#backends:\n"

// Example returns a commented policy file that loads as Default. It includes the
// examples of the backends' settings, in the given order.
func Example(known []Known) []byte {
	before, after, _ := strings.Cut(example, exampleBackends)
	var text strings.Builder
	text.WriteString(before + exampleBackends)
	for _, k := range known {
		exampler, ok := settings(known, k.Name).(Exampler)
		if !ok {
			fmt.Fprintf(&text, "#  %s: {enabled: auto}\n", k.Name)
			continue
		}
		fmt.Fprintf(&text, "#  %s:\n#    enabled: auto\n", k.Name)
		for line := range strings.Lines(string(exampler.Example())) {
			text.WriteString(strings.TrimRight("#    "+line, " \n") + "\n")
		}
	}
	return []byte(text.String() + after)
}

// Schema returns the JSON schema, draft 2020-12, of a policy file, with the
// settings of the backends. It fails if a backend's settings return something
// other than a JSON object as their schema.
//
// The schema is for editors; Load decides. The schema cannot detect a pattern
// that matches no backend, what YAML allows and JSON does not, or what only a
// Validator knows.
func Schema(known []Known) ([]byte, error) {
	backends := make(map[string]any, len(known))
	for _, k := range known {
		part, err := backendSchema(k)
		if err != nil {
			return nil, fmt.Errorf("schema of the settings of backend %s: %w", k.Name, err)
		}
		backends[k.Name] = part
	}
	parts, err := json.Marshal(backends)
	if err != nil {
		return nil, err
	}
	whole := bytes.Replace(schema, []byte(`"properties": {}`), append([]byte(`"properties": `), parts...), 1)
	var indented bytes.Buffer
	err = json.Indent(&indented, whole, "", "  ")
	return indented.Bytes(), err
}

// backendSchema returns the schema of a backend's settings. They may have any
// field if they are not a Schemer.
func backendSchema(k Known) (map[string]any, error) {
	keywords := make(map[string]any)
	settings := settings([]Known{k}, k.Name)
	schemer, ok := settings.(Schemer)
	if ok {
		if err := json.Unmarshal(schemer.Schema(), &keywords); err != nil {
			return nil, err
		}
	}
	properties := map[string]any{
		"enabled": map[string]any{"description": "Whether the backend is used.", "$ref": "#/$defs/switch", "default": "auto"},
	}
	if fields, ok := keywords["properties"].(map[string]any); ok {
		maps.Copy(properties, fields)
	}
	keywords["properties"] = properties
	keywords["type"] = "object"
	keywords["description"] = strings.ReplaceAll(k.Summary, "`", "")
	if settings == nil || ok {
		keywords["additionalProperties"] = false
	}
	return keywords, nil
}
