package backends_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/policy"
)

// The schema, by which an editor checks a policy, and Load accept the same values. There
// are two exceptions, which a schema cannot express: a pattern of backends that matches none
// of this build, and what YAML can write and JSON cannot (a key twice, a second document).
func TestSchemaAcceptsWhatLoadAccepts(t *testing.T) {
	schema := loadSchema(t)
	duration := rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom([]rune("0019.+-hmsunµ")), 0, 12, -1),
		rapid.StringMatching(`[+-]?([0-9]{1,20}([.][0-9]{0,20})?(h|m|s|ms|us|µs|μs|ns)){1,8}`),
		rapid.SampledFrom([]string{"-0s", "-0", "0", "+0", "99999h", "100000h", "2562047h48m", "9999999999999h", "00000001h", ".5h", "1.h"}),
	)
	glob := rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom([]rune(`az0[]^-\*?.A`)), 0, 10, -1),
		rapid.StringMatching(`[a-z*]{0,3}\[\^?[\]^a-]{0,4}\]?[a-z\\]{0,2}`),
		rapid.SampledFrom([]string{"[", "[]", "[^]", "[^^]", "[^^-a]", "[]a]", "[a-]", "[-a]", `\`, `[\]`, `[\]]`, "a]", "^", "[[]", "[*]", "[a*]*[b"}),
	)
	number := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(n int64) any { return float64(n) }),
		rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.SampledFrom([]any{0.0, 1.0, -1.0, 2147483647.0, 2147483648.0, 1e18, 1e300, 100.0, 101.0}),
	)
	text := func(g *rapid.Generator[string]) *rapid.Generator[any] {
		return rapid.Map(g, func(s string) any { return s })
	}
	list := func(g *rapid.Generator[string]) *rapid.Generator[any] {
		return rapid.Map(g, func(s string) any { return []any{s} })
	}
	fields := []struct {
		path  []string
		value *rapid.Generator[any]
	}{
		{[]string{"gracePeriod"}, text(duration)},
		{[]string{"minAge"}, rapid.OneOf(text(duration), number)},
		{[]string{"journal", "restoreHold"}, text(duration)},
		{[]string{"journal", "keep"}, number},
		{[]string{"namespaces", "include"}, list(glob)},
		{[]string{"namespaces", "exclude"}, list(glob)},
		{[]string{"limits", "maxReleases"}, number},
		{[]string{"limits", "minEntries"}, number},
		{[]string{"limits", "maxFraction"}, number},
		{[]string{"limits", "maxPodDrop"}, number},
		{[]string{"rules", "match", "namespaces"}, list(glob)},
		{[]string{"rules", "match", "pods"}, list(glob)},
		{[]string{"rules", "match", "backends"}, list(glob)},
	}
	rapid.Check(t, func(t *rapid.T) {
		f := fields[rapid.IntRange(0, len(fields)-1).Draw(t, "field")]
		value := f.value.Draw(t, "value")
		for i := len(f.path) - 1; i >= 0; i-- {
			value = node{f.path[i]: value}
			if f.path[i] == "match" {
				value = []any{value}
			}
		}
		doc := value.(node)
		doc["apiVersion"], doc["kind"] = policy.APIVersion, policy.Kind
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		var seen node // as Load sees it
		if err := json.Unmarshal(data, &seen); err != nil {
			t.Fatal(err)
		}
		_, err = policy.Load(data, known)
		if got := accepts(schema, schema, seen); got != (err == nil || isOfTheBuild(err)) {
			t.Fatalf("%s: schema accepts it: %v; Load: %v", data, got, err)
		}
	})
}

// Load refuses a duration by the pattern of the schema, and beside it by time.ParseDuration.
func TestDurationsOfTheSchemaDoNotOverflow(t *testing.T) {
	for _, text := range []string{"99999h", "9999999m", "999999999s", "999999999999ms", "999999999999999us", "999999999999999999ns"} {
		six := text + text + text + text + text + text
		data, err := json.Marshal(node{"apiVersion": policy.APIVersion, "kind": policy.Kind, "gracePeriod": six})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.Load(data, known); err != nil {
			t.Errorf("%s: %v", six, err)
		}
	}
}
