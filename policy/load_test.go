package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/policy"
)

func TestAbsentFieldsHaveTheirDefaults(t *testing.T) {
	want := policy.Policy{
		APIVersion:  "ip-reaper/v1alpha1",
		Kind:        "ReapPolicy",
		DryRun:      new(true),
		GracePeriod: &policy.Duration{Duration: 15 * time.Minute},
		MinAge:      &policy.Duration{Duration: 5 * time.Minute},
		Namespaces:  policy.Namespaces{Include: []string{"*"}, Exclude: []string{}},
		Rules:       []policy.Rule{},
		Backends:    map[string]policy.Backend{},
		Pods: policy.Pods{
			Finished:   policy.Hold,
			Stuck:      policy.Hold,
			Superseded: policy.Release,
			Unnamed:    policy.Hold,
		},
		Evidence: policy.Evidence{Annotations: policy.KeepAnnotations},
		Nodes:    policy.Nodes{Unreachable: policy.Hold, Unknown: policy.Hold, Foreign: policy.Hold},
		Limits: policy.Limits{
			MaxReleases: new(0),
			MaxFraction: new(0.5),
			MaxPodDrop:  new(0.5),
			MinEntries:  new(20),
		},
		Protection: policy.Protection{StatefulSets: policy.OrdinalInRange},
		Journal:    policy.Journal{Keep: new(10), KeepFor: &policy.Duration{Duration: 168 * time.Hour}, RestoreHold: &policy.Duration{Duration: 24 * time.Hour}},
	}
	if diff := cmp.Diff(want, policy.Default()); diff != "" {
		t.Errorf("Default (-want +got):\n%s", diff)
	}
	for name, data := range map[string]string{
		"nothing but the header": header,
		"empty mappings":         header + "namespaces: {}\nbackends: {}\npods: {}\nnodes: {}\nlimits: {}\nprotection: {}\njournal: {}\nrules: []\n",
		"empty lists":            header + "rules: []\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := policy.Load([]byte(data), known)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("Load: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	*policy.Default().DryRun = false
	*policy.Default().Journal.Keep = 1
	policy.Default().Namespaces.Include[0] = "changed"
	p := policy.Default()
	if !*p.DryRun || *p.Journal.Keep != 10 || p.Namespaces.Include[0] != "*" {
		t.Errorf("a change to one Default changes the next: %+v", p)
	}
}

func TestEachFieldIsRead(t *testing.T) {
	got, err := policy.Load([]byte(fullPolicy), known)
	if err != nil {
		t.Fatal(err)
	}
	day := policy.Duration{Duration: 24 * time.Hour}
	want := policy.Policy{
		APIVersion:  policy.APIVersion,
		Kind:        policy.Kind,
		DryRun:      new(false),
		GracePeriod: &policy.Duration{Duration: 90 * time.Minute},
		MinAge:      &policy.Duration{},
		Namespaces:  policy.Namespaces{Include: []string{"team-*"}, Exclude: []string{"team-a"}},
		Rules: []policy.Rule{{
			Match: policy.Match{
				Namespaces: []string{"db-*"},
				Pods:       []string{"pg-[0-9]"},
				Backends:   []string{"whereabouts", "over*"},
			},
			GracePeriod: &day,
			MinAge:      &policy.Duration{Duration: 1500 * time.Millisecond},
			Hold:        true,
			Restored:    policy.Release,
		}},
		Backends: map[string]policy.Backend{
			"calico": {Enabled: policy.Auto, Settings: &settings{
				Mode: "slow", Login: login{User: "me", Key: "k"}, Places: []place{{Name: "a"}},
			}},
			"overlapping": {Enabled: policy.Off},
			"whereabouts": {Enabled: policy.On},
		},
		Pods: policy.Pods{
			Finished:   policy.Release,
			Stuck:      policy.Release,
			Superseded: policy.Hold,
			Unnamed:    policy.Release,
		},
		Evidence: policy.Evidence{Annotations: policy.OwnAnnotations},
		Nodes:    policy.Nodes{Unreachable: policy.Release, Unknown: policy.Release, Foreign: policy.Release},
		Limits: policy.Limits{
			MaxReleases: new(100),
			MaxFraction: new(1.0),
			MaxPodDrop:  new(0.25),
			MinEntries:  new(0),
		},
		Protection: policy.Protection{StatefulSets: policy.Ignore},
		Journal:    policy.Journal{Keep: new(3), KeepFor: &policy.Duration{Duration: 36 * time.Hour}, RestoreHold: &policy.Duration{Duration: 2 * time.Hour}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

// TestDryRun proves the policy's part of promise 5: only an explicit false is read
// as false. YAML 1.1 has more words for it.
func TestDryRun(t *testing.T) {
	for _, tt := range []struct {
		yaml    string
		want    bool
		refused string
	}{
		{yaml: "", want: true},
		{yaml: "dryRun: true", want: true},
		{yaml: "dryRun: yes", want: true},
		{yaml: "dryRun: on", want: true},
		{yaml: "dryRun: false", want: false},
		{yaml: "dryRun: no", want: false},
		{yaml: "dryRun: off", want: false},
		{yaml: "dryRun:", refused: "dryRun: Required value: must not be null; leave the field out for its default"},
		{yaml: "dryRun: null", refused: "dryRun: Required value: must not be null; leave the field out for its default"},
		{yaml: "dryRun: ~", refused: "dryRun: Required value: must not be null; leave the field out for its default"},
		{yaml: `dryRun: ""`, refused: "dryRun: Required value: must not be empty"},
		{yaml: `dryRun: "false"`, refused: "dryRun: Invalid value: must be true or false, not string"},
		{yaml: "dryRun: 0", refused: "dryRun: Invalid value: must be true or false, not number"},
		{yaml: "dryRun: [false]", refused: "dryRun: Invalid value: must be true or false, not array"},
		{yaml: "dryrun: false", refused: "dryrun: Forbidden: unknown field; did you mean dryRun?"},
	} {
		t.Run(tt.yaml, func(t *testing.T) {
			p, err := policy.Load([]byte(header+tt.yaml), known)
			if tt.refused != "" {
				wantRefusal(t, p, err, tt.refused)
				return
			}
			if err != nil || p.DryRun == nil || *p.DryRun != tt.want {
				t.Errorf("Load = %+v, %v, want DryRun %v", p, err, tt.want)
			}
		})
	}
}

func TestDocuments(t *testing.T) {
	const (
		more  = "it must be a single YAML document, and has several"
		empty = `it must not be empty: apiVersion must be "ip-reaper/v1alpha1" and kind "ReapPolicy"`
	)
	notYAML := []string{"empty", "only a comment", "null", "a list", "a word", "no YAML", "an open bracket"}
	for _, tt := range []struct {
		name, data string
		refused    []string
	}{
		{"one document", header, nil},
		{"marked start", "---\n" + header, nil},
		{"marked end", header + "...\n", nil},
		{"JSON", `{"apiVersion": "ip-reaper/v1alpha1", "kind": "ReapPolicy"}`, nil},
		{"at the size limit", header + strings.Repeat("#", policy.MaxSize-len(header)), nil},

		{"empty", "", []string{empty}},
		{"only a comment", "# dryRun: false\n", []string{empty}},
		{"null", "null", []string{empty}},
		{"a list", "- ReapPolicy", []string{"it must be a mapping"}},
		{"a word", "ReapPolicy", []string{"it must be a mapping"}},
		{"two documents", header + "---\n" + header, []string{more}},
		{"two documents in JSON", `{"apiVersion": "x"}{"kind": "y"}`, []string{more}},
		{"second document empty", header + "---\n", []string{more}},
		{"second document malformed", header + "---\n[", []string{more}},
		{"first document empty", "---\n---\n" + header, []string{more}},
		{"second document without a mark", header + "...\ndryRun: false\n", []string{more}},
		{"over the size limit", header + strings.Repeat("#", policy.MaxSize), []string{"it is larger than 262144 bytes"}},
		{"nested too deeply", header + "a: " + strings.Repeat("[", 1e4) + strings.Repeat("]", 1e4),
			[]string{"invalid character '[' exceeded max depth"}},
		{"no YAML", header + "\tdryRun: false", []string{"line 3: YAML forbids tabs for indentation, use spaces"}},
		{"UTF-16, as of PowerShell", "\xff\xfek\x00:\x00", []string{"it must be UTF-8"}},
		{"an open bracket", header + "limits: [", []string{"yaml: line 3: did not find expected node content"}},
		{"a key twice", header + "kind: ReapPolicy\n", []string{`line 3: key "kind" already set in map`}},
		{"no number", header + "limits: {maxFraction: .nan}", []string{"json: unsupported value: NaN"}},
		{"no header", "dryRun: false", []string{
			`apiVersion: Required value: must be "ip-reaper/v1alpha1"`,
			`kind: Required value: must be "ReapPolicy"`,
		}},
		{"another version", "apiVersion: ip-reaper/v2\nkind: ReapPolicy\nfields: [of, the, future]", []string{
			`apiVersion: Unsupported value: "ip-reaper/v2": supported values: "ip-reaper/v1alpha1"`,
		}},
		{"another kind", "apiVersion: v1\nkind: ConfigMap\ndata: {}", []string{
			`apiVersion: Unsupported value: "v1": supported values: "ip-reaper/v1alpha1"`,
			`kind: Unsupported value: "ConfigMap": supported values: "ReapPolicy"`,
		}},
		{"header of wrong types", "apiVersion: 1\nkind:", []string{
			`apiVersion: Unsupported value: 1: supported values: "ip-reaper/v1alpha1"`,
			`kind: Required value: must be "ReapPolicy"`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := policy.Load([]byte(tt.data), known)
			if len(tt.refused) > 0 {
				wantRefusal(t, p, err, tt.refused...)
				if refusal := (*policy.Error)(nil); errors.As(err, &refusal) && refusal.NotYAML != slices.Contains(notYAML, tt.name) {
					t.Errorf("NotYAML = %t", refusal.NotYAML)
				}
			} else if diff := cmp.Diff(policy.Default(), p); err != nil || diff != "" {
				t.Errorf("Load: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDurationsAreWrittenAsByHand(t *testing.T) {
	for _, text := range []string{"0s", "1.5s", "10m", "1m10s", "10h", "1h10m", "1h0m10s"} {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(policy.Duration{Duration: d}); got != text {
			t.Errorf("String of %v = %q, want %q", d, got, text)
		}
	}
}
