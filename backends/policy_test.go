package backends_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/policy"
)

func TestExampleLoadsAsTheDefault(t *testing.T) {
	got, err := policy.Load(policy.Example(known), nil)
	if diff := cmp.Diff(policy.Default(), got); err != nil || diff != "" {
		t.Errorf("Load(Example): %v (-want +got):\n%s", err, diff)
	}
}

// TestCommentedExampleLoads uncomments what is no prose: prose has one space
// after its #.
func TestCommentedExampleLoads(t *testing.T) {
	prose := regexp.MustCompile(`(?m)^# \S.*\n`)
	mark := regexp.MustCompile(`(?m)^#`)
	data := mark.ReplaceAll(prose.ReplaceAll(policy.Example(known), nil), nil)
	p, err := policy.Load(data, known)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Rules) != 3 || !p.Rules[1].Hold || len(p.Backends) != len(known) {
		t.Errorf("rules %+v, backends %+v, want the 3 and the %d of the comments", p.Rules, p.Backends, len(known))
	}
	for name, b := range p.Backends {
		if b.Settings != nil {
			wantNoZero(t, name, reflect.ValueOf(b.Settings))
		}
	}
}

// wantNoZero fails the test if a field is zero, at any depth.
func wantNoZero(t *testing.T, at string, v reflect.Value) {
	t.Helper()
	if v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		t.Errorf("the comments have no %s", at)
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

// TestNoPasswordIsEchoed puts a URL with a password in every place of a policy,
// also in the place of a name.
func TestNoPasswordIsEchoed(t *testing.T) {
	full := func() node {
		var doc node
		if err := yaml.Unmarshal([]byte(fullPolicy), &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	places := 0
	setPlace(full(), -1, nil, &places)
	rapid.Check(t, func(t *rapid.T) {
		special := rapid.StringMatching(`[a-z@:/?#%&=+'"{}\[\]\\, \n\x{00a0}-]{0,4}`)
		url := rapid.SampledFrom([]string{"https://", "http://", "etcd://"}).Draw(t, "scheme") + "root:" +
			special.Draw(t, "before") + "hunter2" + special.Draw(t, "after") + "@etcd:2379"
		doc := full()
		var value any = url
		if rapid.Bool().Draw(t, "in a list") {
			value = []any{url}
		}
		place, seen := rapid.IntRange(0, places-1).Draw(t, "place"), 0
		setPlace(doc, place, value, &seen)
		if rapid.Bool().Draw(t, "as a name") {
			seen = 0
			doc = full()
			setPlace(doc, place, node{url: nil}, &seen)
		}
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = policy.Load(data, known); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("place %d: %v", place, err)
		}
	})
}

// setPlace replaces what is in one place of container, by its number, and
// counts the places. No place has a negative number.
func setPlace(container any, place int, value any, seen *int) {
	set := func(was any, replace func(any)) {
		if *seen == place {
			replace(value)
		}
		*seen++
		setPlace(was, place, value, seen)
	}
	switch c := container.(type) {
	case node:
		for _, name := range slices.Sorted(maps.Keys(c)) {
			set(c[name], func(v any) { c[name] = v })
		}
	case []any:
		for i, was := range c {
			set(was, func(v any) { c[i] = v })
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(policy.Example(known))
	f.Add([]byte(fullPolicy))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := policy.Load(data, known)
		if err != nil {
			var refusal *policy.Error
			if !errors.As(err, &refusal) || len(refusal.Messages) == 0 {
				t.Fatalf("error %#v has no messages", err)
			}
			if got := len(strings.Split(err.Error(), "\n")); got != len(refusal.Messages) {
				t.Fatalf("%d lines for %d messages: %q", got, len(refusal.Messages), err)
			}
			if diff := cmp.Diff(policy.Policy{}, p); diff != "" {
				t.Fatalf("a refused policy is applied in part:\n%s", diff)
			}
			return
		}
		for _, of := range []any{p, p.Namespaces, p.Limits, p.Protection, p.Journal} {
			for f, value := range reflect.ValueOf(of).Fields() {
				canBeNil := []reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}
				if slices.Contains(canBeNil, value.Kind()) && value.IsNil() {
					t.Fatalf("%s is nil in %+v", f.Name, of)
				}
			}
		}
		for name, one := range p.Backends {
			if reserved, ok := one.Settings.(*reservedips.Settings); ok {
				for _, r := range reserved.Resources {
					for _, path := range []reservedips.FieldPath{r.Address, r.Pod, r.Namespace, r.TTL, r.DeletedAt} {
						if _, err := path.Parse(); err != nil && path != "" {
							t.Fatalf("%s: path %q of a policy that loads: %v", name, path, err)
						}
					}
				}
			}
		}
	})
}
