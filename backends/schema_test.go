package backends_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/policy"
)

// node is a JSON object, of the schema or of a policy.
type node = map[string]any

func loadSchema(t *testing.T) node {
	t.Helper()
	data, err := policy.Schema(known)
	if err != nil {
		t.Fatal(err)
	}
	var schema node
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSchemaHasTheFieldsOfTheTypes(t *testing.T) {
	schema := loadSchema(t)
	compareFields(t, "policy", schema, schema, reflect.TypeFor[policy.Policy]())
}

// compareFields compares a type with its schema, which may have more fields beside.
func compareFields(t *testing.T, at string, root, s node, typ reflect.Type, beside ...string) {
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
		names := slices.Clone(beside)
		for _, f := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
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
	case typ == reflect.TypeFor[map[string]policy.Backend]():
		compareBackends(t, at, root, s)
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

// compareBackends compares the settings of each backend with their schema.
func compareBackends(t *testing.T, at string, root, s node) {
	properties, _ := s["properties"].(node)
	if s["type"] != "object" || s["additionalProperties"] != false || len(properties) != len(known) {
		t.Errorf("%s: schema has %d backends, want the %d of the program and no others", at, len(properties), len(known))
	}
	for _, k := range known {
		property, _ := properties[k.Name].(node)
		if property == nil {
			t.Errorf("%s[%s]: not in the schema", at, k.Name)
			continue
		}
		at := at + "[" + k.Name + "]"
		if k.Settings == nil {
			compareFields(t, at, root, property, reflect.TypeFor[policy.Backend]())
			continue
		}
		compareFields(t, at, root, property, reflect.TypeOf(k.Settings()), "enabled")
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
		"kubernetes", "etcdv3", node{"datastore": "auto"}, node{"etcd": node{}},
		node{"datastore": "etcdv3", "etcd": node{"endpoints": []any{"https://etcd:2379"}}},
		2.0, 100.0, 101.0, ".a", "{.a}", "$.a", "{$.a}", "[0]", "{.a", ".a}", ".a{.b}", "{.a}{.b}", "{.a}b", "{a}", "{}", "$",
		"example.com", "a.", "a..b", "-a", "a-", "a-1", "1a", "a_b", "a/b", "v1", "v1/a", "A",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a", strings.Repeat("a.", 127),
		strings.Repeat("a.", 126) + "aa", reservedIP(), reservedIP("address"), reservedIP("pod"), reservedIP("address", "pod"),
		reservedIP("namespace"), reservedIP("address", "namespace"), reservedIP("pod", "namespace"),
		[]any{reservedIP("address"), reservedIP("namespace")},
	}
	schema := loadSchema(t)
	var full, doc node
	if err := yaml.Unmarshal([]byte(fullPolicy), &full); err != nil {
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
	var probe func(at string, value any)
	probeField := func(at string, container node, name string) {
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
	probe = func(at string, value any) {
		switch container := value.(type) {
		case node:
			for _, name := range slices.Sorted(maps.Keys(container)) {
				probeField(at, container, name)
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
	header := node{"apiVersion": full["apiVersion"], "kind": full["kind"]}
	doc = full
	compare("the full policy")
	doc = header
	probe("policy", doc)
	// A policy with one field at a time, for a small one is read faster.
	for _, name := range slices.Sorted(maps.Keys(full)) {
		doc = maps.Clone(header)
		doc[name] = full[name]
		probeField("policy", doc, name)
	}
}

var ofNoBackend = regexp.MustCompile(`^rules\[\d+\]\.match\.backends\[\d+\]: Unsupported value: `)

// isOfTheBuild says that all the mistakes are patterns that match no backend.
func isOfTheBuild(err error) bool {
	for message := range strings.Lines(err.Error()) {
		if !ofNoBackend.MatchString(message) {
			return false
		}
	}
	return true
}

// reservedIP returns an item of backends.reservedIPs.resources with these paths besides
// its ttl.
func reservedIP(paths ...string) node {
	item := node{"resource": node{"group": "a", "version": "v1", "resource": strings.Join(append(paths, "s"), "-")}, "ttl": ".t"}
	for _, name := range paths {
		item[name] = ".a"
	}
	return item
}
