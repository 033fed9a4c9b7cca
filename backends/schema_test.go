package backends_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/policy"
)

// node is a JSON object, of the schema or of a policy.
type node = map[string]any

// loadSchema returns the schema of the program's policies.
func loadSchema(t *testing.T) node {
	t.Helper()
	text, err := policy.Schema(known)
	if err != nil {
		t.Fatal(err)
	}
	var schema node
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// loadFullPolicy returns fullPolicy as decoded YAML.
func loadFullPolicy(t *testing.T) node {
	t.Helper()
	var full node
	if err := yaml.Unmarshal([]byte(fullPolicy), &full); err != nil {
		t.Fatal(err)
	}
	return full
}

// The other tests change fullPolicy place by place. A field missing from it would be in no
// test.
func TestFullPolicyHasAllFieldsOfTypesAndSchema(t *testing.T) {
	p, err := policy.Load([]byte(fullPolicy), known)
	if err != nil {
		t.Fatal(err)
	}
	wantNoZero(t, "policy", reflect.ValueOf(p))
	for _, k := range known {
		if p.Backends[k.Name].Settings != nil {
			wantNoZero(t, k.Name, reflect.ValueOf(p.Backends[k.Name].Settings))
		}
	}
	wantProperties(t, "policy", loadSchema(t), loadFullPolicy(t))
}

// wantNoZero fails the test if a field is zero, at any depth.
func wantNoZero(t *testing.T, at string, v reflect.Value) {
	t.Helper()
	if v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		t.Errorf("it has no %s", at)
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		for f, value := range v.Fields() {
			wantNoZero(t, at+"."+f.Name, value)
		}
	}
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			wantNoZero(t, fmt.Sprintf("%s[%d]", at, i), v.Index(i))
		}
	}
}

// wantProperties fails the test if a value lacks a property of its schema, at any depth.
func wantProperties(t *testing.T, at string, schema, value any) {
	t.Helper()
	s, _ := schema.(node)
	switch value := value.(type) {
	case node:
		properties, _ := s["properties"].(node)
		for name, property := range properties {
			if _, ok := value[name]; !ok {
				t.Errorf("it has no %s.%s", at, name)
			}
			wantProperties(t, at+"."+name, property, value[name])
		}
	case []any:
		wantProperties(t, at+"[]", s["items"], value[0])
	}
}

// Editors show the defaults in the schema.
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

// An editor that uses the schema accepts the policies that Load accepts. There are two
// exceptions, which a schema cannot express: a backend pattern that matches none of this build,
// and what YAML can express and JSON cannot (a key twice, a second document).
func TestSchemaAgreesWithLoad(t *testing.T) {
	probes := []any{
		nil, true, false, "", "auto", "true", "no", 0.0, 1.0, -1.0, 0.5, 1.5, 50.0, 2147483647.0, 2147483648.0, 1e18, 1e300,
		"hold", "release", "Hold", "ordinalInRange", "ignore", policy.Kind, policy.APIVersion,
		"0", "0s", "15m", "1h30m", "1.5h", ".5s", "5.m", "+1s", "1us", "1µs", "15", "1d", "-5m", "m", ".m", "1h 5m",
		"-0s", "+0", "100000h", "2562047h48m", "9999999999999h", "00000001h", ".5h", "1.h",
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
	for _, glob := range []string{"[", "[]", "[^]", "[^^]", "[^^-a]", "[]a]", "[a-]", "[-a]", `\`, `[\]`, `[\]]`, "a]", "^", "[[]", "[*]", "[a*]*[b"} {
		probes = append(probes, []any{glob})
	}
	for _, part := range []string{"99999h", "9999999m", "999999999s", "999999999999ms", "999999999999999us", "999999999999999999ns"} {
		probes = append(probes, strings.Repeat(part, 6)) // together, they do not overflow
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("policy.json", loadSchema(t)); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	change(t, probes, func(at string, doc node) {
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		seen, err := jsonschema.UnmarshalJSON(bytes.NewReader(data)) // as Load sees it
		if err != nil {
			t.Fatal(err)
		}
		_, loads := policy.Load(data, known)
		if valid := schema.Validate(seen); (valid == nil) != (loads == nil || isOfTheBuild(loads)) {
			t.Errorf("%s: schema: %v; Load: %v", at, valid, loads)
		}
	})
}

// A policy may have a URL with a password anywhere, even in place of a name. No error quotes
// it, since errors end up in logs.
func TestNoPasswordIsEchoed(t *testing.T) {
	var probes []any
	for _, special := range []string{"", ":", "/", "#", "%", `"`, "{", `\`, "\n", " "} {
		url := "https://root:" + special + "hunter2" + special + "@etcd:2379"
		probes = append(probes, url, []any{url}, node{url: nil})
	}
	change(t, probes, func(at string, doc node) {
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = policy.Load(data, known); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", at, err)
		}
	})
}

// change removes each value of fullPolicy, replaces it with each probe, and adds a field to
// each object, trying the policy each time. Besides its header, the policy has one field at a
// time, because a small policy is read faster. With -short, it tries every fourth probe,
// different ones in each place.
func change(t *testing.T, probes []any, all func(at string, doc node)) {
	t.Helper()
	full := loadFullPolicy(t)
	tried := 0
	try := func(at string, doc node) {
		if tried++; !testing.Short() || tried%4 == 0 {
			all(at, doc)
		}
	}
	all("the full policy", full)
	var doc node
	var inside func(at string, value any)
	field := func(at string, object node, name string) {
		was := object[name]
		delete(object, name)
		try(at+" without "+name, doc)
		for _, p := range probes {
			object[name] = p
			try(fmt.Sprintf("%s.%s = %#v", at, name, p), doc)
		}
		object[name] = was
		inside(at+"."+name, was)
	}
	inside = func(at string, value any) {
		switch container := value.(type) {
		case node:
			for _, name := range slices.Sorted(maps.Keys(container)) {
				field(at, container, name)
			}
			container["Unknown"] = true
			try(at+" with an unknown field", doc)
			delete(container, "Unknown")
		case []any:
			for i, was := range container {
				for _, p := range probes {
					container[i] = p
					try(fmt.Sprintf("%s[%d] = %#v", at, i, p), doc)
				}
				container[i] = was
				inside(fmt.Sprintf("%s[%d]", at, i), was)
			}
		}
	}
	header := node{"apiVersion": full["apiVersion"], "kind": full["kind"]}
	doc = maps.Clone(header)
	inside("policy", doc)
	for _, name := range slices.Sorted(maps.Keys(full)) {
		doc = maps.Clone(header)
		doc[name] = full[name]
		field("policy", doc, name)
	}
}

var ofNoBackend = regexp.MustCompile(`^rules\[\d+\]\.match\.backends\[\d+\]: Unsupported value: `)

// isOfTheBuild reports whether all the mistakes are patterns that match no backend.
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
