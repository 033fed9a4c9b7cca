package print

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The schemas in docs/schema are made from the types. With -update, they are made anew.
func TestSchemasAreThoseOfTheTypes(t *testing.T) {
	for kind, value := range map[string]any{
		"ReapReport":    report.Report{},
		"Explanation":   report.Explanation{},
		"PoolsReport":   poolsReport{},
		"RunHistory":    report.History{},
		"Status":        statusReport{},
		"RestoreReport": report.RestoreReport{},
	} {
		t.Run(kind, func(t *testing.T) {
			schema := schemaOf(t, value)
			schema.Schema = "https://json-schema.org/draft/2020-12/schema"
			schema.Title = kind
			schema.Properties["kind"].Enum = []any{kind}
			schema.Properties["apiVersion"].Enum = []any{policy.APIVersion}
			got, err := json.MarshalIndent(schema, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			file := filepath.Join("..", "..", "..", "docs", "schema", kind+".json")
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs; if it should, run the test with -update (-want +got):\n%s", file, diff)
			}
		})
	}
}

// schemaOf returns the schema of the JSON form of a value.
func schemaOf(t *testing.T, value any) *jsonschema.Schema {
	t.Helper()
	// What has a form of its own.
	forms := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[big.Int]():         {Type: "integer"},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[policy.Duration](): {Type: "string"},
		reflect.TypeFor[netip.Addr]():      {Type: "string"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[judge.Verdict]():   words(judge.Held, judge.InUse, judge.Suspected, judge.Orphaned),
		reflect.TypeFor[ipam.Status]():     words(ipam.StatusFailed, ipam.StatusPartial, ipam.StatusSkipped, ipam.StatusOK),
		reflect.TypeFor[report.Fate]():     words(shownFates()...),
	}
	backend := inferred(t, reflect.TypeFor[report.BackendReport](), forms)
	counts := inferred(t, reflect.TypeFor[report.Counts](), forms)
	backend.Required = slices.DeleteFunc(backend.Required, func(name string) bool { return counts.Properties[name] != nil })
	forms[reflect.TypeFor[report.BackendReport]()] = backend
	part := inferred(t, reflect.TypeFor[journal.Part](), forms)
	part.Properties["kind"] = &jsonschema.Schema{Type: "string"}
	part.Properties["version"] = &jsonschema.Schema{Type: "integer"}
	part.PropertyOrder = append(part.PropertyOrder, "kind", "version")
	forms[reflect.TypeFor[journal.Part]()] = part
	return inferred(t, reflect.TypeOf(value), forms)
}

// words is the schema of one of some words.
func words[T interface{ String() string }](values ...T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		if !slices.Contains(s.Enum, any(v.String())) {
			s.Enum = append(s.Enum, v.String())
		}
	}
	return s
}

// inferred returns the schema of a type, of which some parts have forms of their own. It admits
// fields that it does not know, since later versions may add them. A list is never null.
func inferred(t *testing.T, of reflect.Type, forms map[reflect.Type]*jsonschema.Schema) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.ForType(of, &jsonschema.ForOptions{TypeSchemas: forms})
	if err != nil {
		t.Fatal(err)
	}
	open(schema)
	return schema
}

func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if slices.Contains(s.Types, "array") {
		s.Type, s.Types = "array", nil
	}
	if s.Properties != nil {
		s.AdditionalProperties = nil
	}
	for _, property := range s.Properties {
		open(property)
	}
	open(s.Items)
	open(s.AdditionalProperties)
}

// shownFates are the fates that have a word.
func shownFates() (shown []report.Fate) {
	for f := report.Unknown; f <= report.NotRestored; f++ {
		if f.String() != "" {
			shown = append(shown, f)
		}
	}
	return shown
}
