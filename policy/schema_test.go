package policy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/policy"
)

// node is a JSON object, of the schema or of a policy.
type node = map[string]any

func loadSchema(t *testing.T) node {
	t.Helper()
	var schema node
	if err := json.Unmarshal(policy.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSchemaHasTheFieldsOfTheTypes(t *testing.T) {
	schema := loadSchema(t)
	compareFields(t, "policy", schema, schema, reflect.TypeFor[policy.Policy]())
}

// anyBackend has the settings of a backend that has none of its own.
type anyBackend struct {
	Enabled policy.Switch `json:"enabled"`
}

func compareFields(t *testing.T, at string, root, s node, typ reflect.Type) {
	s = resolve(root, s)
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch _, scalar := reflect.New(typ).Interface().(json.Unmarshaler); {
	case scalar:
		if s["type"] == "object" || s["type"] == "array" {
			t.Errorf("%s: type %v in the schema, %v is a scalar", at, s["type"], typ)
		}
	case typ.Kind() == reflect.Struct:
		if s["type"] != "object" || s["additionalProperties"] != false {
			t.Errorf("%s: schema is no closed object", at)
		}
		properties, _ := s["properties"].(node)
		var names []string
		for _, f := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
			property, _ := properties[name].(node)
			if property["description"] == nil {
				t.Errorf("%s.%s: no description", at, name)
			}
			compareFields(t, at+"."+name, root, property, f.Type)
		}
		slices.Sort(names)
		if diff := cmp.Diff(names, slices.Sorted(maps.Keys(properties))); diff != "" {
			t.Errorf("%s: fields of the type and of the schema (-type +schema):\n%s", at, diff)
		}
	case typ.Kind() == reflect.Map:
		value, ok := s["additionalProperties"].(node)
		if s["type"] != "object" || !ok {
			t.Fatalf("%s: schema is no map", at)
		}
		properties, _ := s["properties"].(node)
		for name, property := range properties {
			compareFields(t, at+"["+name+"]", root, property.(node), typ.Elem())
		}
		compareFields(t, at+"[]", root, value, reflect.TypeFor[anyBackend]())
	case typ.Kind() == reflect.Slice:
		items, ok := s["items"].(node)
		if s["type"] != "array" || !ok {
			t.Fatalf("%s: schema is no list", at)
		}
		compareFields(t, at+"[]", root, items, typ.Elem())
	default:
		want := map[reflect.Kind]string{
			reflect.Bool: "boolean", reflect.Int: "integer", reflect.Float64: "number", reflect.String: "string",
		}[typ.Kind()]
		if _, ok := s["enum"]; ok || s["const"] != nil {
			return
		}
		if s["type"] != want {
			t.Errorf("%s: type %v in the schema, want %s", at, s["type"], want)
		}
	}
}

func TestSchemaHasTheDefaults(t *testing.T) {
	data, err := json.Marshal(policy.Default())
	if err != nil {
		t.Fatal(err)
	}
	var want node
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, defaults(loadSchema(t))); diff != "" {
		t.Errorf("defaults (-Default +schema):\n%s", diff)
	}
}

// defaults returns the object that an absent one stands for.
func defaults(s node) any {
	if value, ok := s["default"]; ok {
		return value
	}
	object := node{}
	for name, property := range s["properties"].(node) {
		object[name] = defaults(property.(node))
	}
	return object
}

// TestSchemaAgreesWithLoad deletes each value of a full policy, replaces it by
// others, and adds fields, and wants the same answer from both each time.
func TestSchemaAgreesWithLoad(t *testing.T) {
	probes := []any{
		nil, true, false, "", "auto", "true", "no", 0.0, 1.0, -1.0, 0.5, 1.5, 50.0,
		"hold", "release", "Hold", "ordinalInRange", "ignore", policy.Kind, policy.APIVersion,
		"0", "0s", "15m", "1h30m", "1.5h", ".5s", "5.m", "+1s", "1us", "1µs", "15", "1d", "-5m", "m", ".m", "1h 5m",
		[]any{}, []any{""}, []any{"a*"}, []any{"a", "A"}, []any{"a,b"}, []any{"[^a-b]?\\*.-"}, []any{1.0}, []any{nil},
		[]any{node{}}, node{}, node{"a": node{}}, node{"a": nil},
		"kubernetes", "etcdv3", []any{"https://etcd:2379"}, node{"datastore": "auto"},
		node{"datastore": "kubernetes", "etcd": node{}}, node{"datastore": "kubernetes", "etcd": node{"caFile": "a"}},
		node{"etcd": node{"caFile": "a"}}, node{"username": "a"}, node{"passwordFile": "a"}, node{"certFile": "a"},
		node{"keyFile": "a"}, node{"username": "a", "passwordFile": "a"}, node{"certFile": "a", "keyFile": "a"},
	}
	schema := loadSchema(t)
	var doc any
	if err := yaml.Unmarshal([]byte(fullPolicy), &doc); err != nil {
		t.Fatal(err)
	}
	compare := func(what string) {
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		_, err = policy.Load(data, known)
		if got := accepts(schema, schema, doc); got != (err == nil || isOfTheBuild(err)) {
			t.Errorf("%s: schema accepts it: %v; Load: %v", what, got, err)
		}
	}
	compare("the full policy")
	var probe func(at string, value any)
	probe = func(at string, value any) {
		switch container := value.(type) {
		case node:
			for _, name := range slices.Sorted(maps.Keys(container)) {
				was := container[name]
				delete(container, name)
				compare(fmt.Sprintf("%s without %s", at, name))
				for _, p := range probes {
					container[name] = p
					compare(fmt.Sprintf("%s.%s = %#v", at, name, p))
				}
				container[name] = was
				probe(at+"."+name, was)
			}
			container["Unknown"] = true
			compare(at + " with an unknown field")
			delete(container, "Unknown")
		case []any:
			for i, was := range container {
				for _, p := range probes {
					container[i] = p
					compare(fmt.Sprintf("%s[%d] = %#v", at, i, p))
				}
				container[i] = was
				probe(fmt.Sprintf("%s[%d]", at, i), was)
			}
		}
	}
	probe("policy", doc)
}

func TestSchemaAgreesWithLoadOnEndpoints(t *testing.T) {
	schema := loadSchema(t)
	for _, text := range []string{
		"https://etcd:2379", "http://10.0.0.1:1", "https://[fd00::1]:2379", "https://ETCD_0.a-b:65535", "",
		"https://fd00::1:2379", "https://etcd", "etcd:2379", "unix://etcd:1", "HTTP://etcd:1", " http://etcd:1", "https://:2379",
		"https://etcd:2379/", "https://etcd:2379?a", "https://etcd:2379#a", "https://root:pw@etcd:2379",
		"https://a:1,https://b:1", "https://a:1,b:1", "https://etcd:0", "https://etcd:100000", "https://etcd:2379\n",
	} {
		doc := withCalico(node{"etcd": node{"endpoints": []any{"https://etcd:1", text}}})
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		_, err = policy.Load(data, known)
		if got := accepts(schema, schema, doc); got != (err == nil) {
			t.Errorf("%q: schema accepts it: %v; Load: %v", text, got, err)
		}
	}
}

// isOfTheBuild says that all the mistakes are names of backends, which the
// schema does not know.
func isOfTheBuild(err error) bool {
	for message := range strings.Lines(err.Error()) {
		if !strings.HasSuffix(strings.TrimSpace(message), backends) {
			return false
		}
	}
	return true
}

// resolve returns s with the definition that it refers to.
func resolve(root, s node) node {
	if ref, ok := s["$ref"].(string); ok {
		merged := maps.Clone(root["$defs"].(node)[strings.TrimPrefix(ref, "#/$defs/")].(node))
		maps.Copy(merged, s)
		delete(merged, "$ref")
		return merged
	}
	return s
}

// accepts is a validator for the keywords that the schema has.
func accepts(root, s node, value any) bool {
	for keyword, want := range resolve(root, s) {
		if !acceptsKeyword(root, s, keyword, want, value) {
			return false
		}
	}
	return true
}

func acceptsKeyword(root, s node, keyword string, want, value any) bool {
	object, isObject := value.(node)
	array, isArray := value.([]any)
	number, isNumber := value.(float64)
	text, isText := value.(string)
	switch keyword {
	case "type":
		_, isBool := value.(bool)
		return map[any]bool{
			"object": isObject, "array": isArray, "string": isText, "boolean": isBool, "number": isNumber,
			"integer": isNumber && number == float64(int64(number)),
		}[want]
	case "const":
		return cmp.Equal(value, want)
	case "enum":
		return slices.ContainsFunc(want.([]any), func(w any) bool { return cmp.Equal(value, w) })
	case "anyOf":
		return slices.ContainsFunc(want.([]any), func(w any) bool { return accepts(root, w.(node), value) })
	case "minimum":
		return !isNumber || number >= want.(float64)
	case "exclusiveMinimum":
		return !isNumber || number > want.(float64)
	case "maximum":
		return !isNumber || number <= want.(float64)
	case "pattern":
		return !isText || regexp.MustCompile(want.(string)).MatchString(text)
	case "minLength":
		return !isText || float64(utf8.RuneCountInString(text)) >= want.(float64)
	case "maxProperties":
		return !isObject || float64(len(object)) <= want.(float64)
	case "dependentRequired":
		for name, needs := range want.(node) {
			_, ok := object[name]
			if ok && !acceptsKeyword(root, s, "required", needs, value) {
				return false
			}
		}
		return true
	case "minItems":
		return !isArray || float64(len(array)) >= want.(float64)
	case "items":
		return !slices.ContainsFunc(array, func(v any) bool { return !accepts(root, want.(node), v) })
	case "required":
		return !isObject || !slices.ContainsFunc(want.([]any), func(w any) bool { _, ok := object[w.(string)]; return !ok })
	case "properties":
		for name, property := range want.(node) {
			if v, ok := object[name]; ok && !accepts(root, property.(node), v) {
				return false
			}
		}
		return true
	case "additionalProperties":
		properties, _ := s["properties"].(node)
		for name, v := range object {
			if _, ok := properties[name]; !ok && (want == false || !accepts(root, want.(node), v)) {
				return false
			}
		}
		return true
	case "$schema", "$defs", "title", "description", "default":
		return true
	}
	panic("the validator does not know the keyword " + keyword)
}
