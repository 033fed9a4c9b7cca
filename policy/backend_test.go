package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
)

func TestSettingsStandBesideEnabled(t *testing.T) {
	for _, tt := range []struct {
		yaml string
		want map[string]policy.Backend
	}{
		{"{}", map[string]policy.Backend{}},
		{"{calico: {}}", map[string]policy.Backend{"calico": {Settings: &settings{}}}},
		{"{calico: {enabled: true}}", map[string]policy.Backend{"calico": {Enabled: policy.On, Settings: &settings{}}}},
		{"{calico: {mode: fast}, overlapping: {enabled: auto}}", map[string]policy.Backend{
			"calico": {Settings: &settings{Mode: "fast"}}, "overlapping": {},
		}},
	} {
		t.Run(tt.yaml, func(t *testing.T) {
			p, err := policy.Load([]byte(header+"backends: "+tt.yaml), known)
			if diff := cmp.Diff(tt.want, p.Backends); err != nil || diff != "" {
				t.Errorf("Load: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestRefusalsOfSettings(t *testing.T) {
	const unknown = "Forbidden: unknown field"
	for _, tt := range []struct {
		name, yaml string
		want       []string // after backends
	}{
		{"unknown field below", "{calico: {login: {password: p}}}", []string{"calico.login.password: " + unknown}},
		{"unknown field in a list", "{calico: {places: [{name: a, size: 1}]}}", []string{"calico.places[0].size: " + unknown}},
		{"unknown field in a map", "{calico: {labels: {a.b: {size: 1}}}}", []string{"calico.labels.a.b.size: " + unknown}},
		{"field of another backend", "{overlapping: {mode: 7}}", []string{"overlapping.mode: " + unknown}},
		{"wrong types", "{calico: {login: 7}, overlapping: []}", []string{
			"calico.login: Invalid value: must be a mapping, not number",
			"overlapping: Invalid value: must be a mapping, not array",
		}},
		{"field that another decoder decodes", "{calico: {mode: slow, places: [{name: a}, {name: b, since: {a: 1}}]}}",
			[]string{"calico.places[1].since: Invalid value: " + noString + ", not object"}},
		{"what only the settings know", "{calico: {mode: none, login: {user: a}}}", []string{
			`calico.mode: Invalid value: "none": must not be none`,
			"calico.login.key: Required value: must be set where user is",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := policy.Load([]byte(header+"backends: "+tt.yaml), known)
			for i := range tt.want {
				tt.want[i] = "backends." + tt.want[i]
			}
			wantRefusal(t, p, err, tt.want...)
		})
	}
}

// backendSchemas returns the schemas of the backends.
func backendSchemas(t *testing.T, known []policy.Known) map[string]map[string]any {
	t.Helper()
	data, err := policy.Schema(known)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Backends struct {
				Properties           map[string]map[string]any
				AdditionalProperties *bool
			}
		}
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	if other := schema.Properties.Backends.AdditionalProperties; other == nil || *other {
		t.Error("the schema takes any name for a backend")
	}
	return schema.Properties.Backends.Properties
}

func TestSchemaHasTheSettings(t *testing.T) {
	enabled := map[string]any{"description": "Whether the backend is used.", "$ref": "#/$defs/switch", "default": "auto"}
	bare := known[1]
	bare.Name, bare.Settings = "silent", func() any { return new(struct{}) }
	got := backendSchemas(t, append(known[:2:2], bare))
	want := map[string]map[string]any{
		"calico": {
			"description": "What Calico holds", "type": "object", "additionalProperties": false, "minProperties": 1.0,
			"properties": map[string]any{
				"enabled": enabled, "places": map[string]any{"type": "array"}, "mode": map[string]any{"$ref": "#/$defs/text"},
				"login": map[string]any{"type": "object"},
			},
		},
		"overlapping": {
			"description": "", "type": "object", "additionalProperties": false, "properties": map[string]any{"enabled": enabled},
		},
		"silent": {"description": "", "type": "object", "properties": map[string]any{"enabled": enabled}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("schemas (-want +got):\n%s", diff)
	}
	if got := backendSchemas(t, nil); len(got) != 0 {
		t.Errorf("schemas of no backends: %v", got)
	}
}

func TestExampleHasTheSettings(t *testing.T) {
	const want = `
#backends:
#  calico:
#    enabled: auto
#    # Fast or slow.
#    mode: fast   # or slow
#
#    places:
#    - {name: here}
#  overlapping: {enabled: auto}
#  whereabouts: {enabled: auto}

`
	text := string(policy.Example(known))
	if !strings.Contains(text, want) {
		t.Errorf("the example does not have%s but is\n%s", want, text)
	}
	p, err := policy.Load([]byte(text), nil)
	if diff := cmp.Diff(policy.Default(), p); err != nil || diff != "" {
		t.Errorf("Load(Example): %v (-want +got):\n%s", err, diff)
	}
}
