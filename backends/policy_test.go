package backends_test

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/policy"
)

// `ip-reaper policy example` prints a policy that changes nothing yet.
func TestExampleLoadsAsTheDefault(t *testing.T) {
	got, err := policy.Load(policy.Example(known), nil)
	if diff := cmp.Diff(policy.Default(), got); err != nil || diff != "" {
		t.Errorf("Load(Example): %v (-want +got):\n%s", err, diff)
	}
}

// A user uncomments what the example offers: everything but prose, which has one space after
// its #.
func TestCommentedExampleLoads(t *testing.T) {
	prose := regexp.MustCompile(`(?m)^# \S.*\n`)
	mark := regexp.MustCompile(`(?m)^#`)
	p, err := policy.Load(mark.ReplaceAll(prose.ReplaceAll(policy.Example(known), nil), nil), known)
	if err != nil || len(p.Rules) != 4 || len(p.Backends) != len(known) {
		t.Errorf("%v, rules %+v, backends %+v, want the 4 and the %d of the comments", err, p.Rules, p.Backends, len(known))
	}
}

// A policy loads whole or is refused with messages, and is the same after another reading.
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
