package main_test

import (
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// changie leaves out a change whose kind it does not know, or whose name does not end in
// .yaml. The changelog of a release would not have it.
func TestChangesHaveKnownKinds(t *testing.T) {
	var config struct {
		Kinds []struct{ Label string }
	}
	decode(t, "docs/changes/changie.yaml", &config, yaml.Unmarshal)
	var kinds []string
	for _, k := range config.Kinds {
		kinds = append(kinds, k.Label)
	}
	files, err := filepath.Glob("docs/changes/unreleased/*") // there is none right after a release
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var change struct{ Kind, Body, Time string }
		decode(t, file, &change, yaml.UnmarshalStrict)
		if filepath.Ext(file) != ".yaml" || !slices.Contains(kinds, change.Kind) || change.Body == "" || change.Time == "" {
			t.Errorf("%s: kind %q, want one of %q, a body, a time, and a name that ends in .yaml", file, change.Kind, kinds)
		}
	}
}

// decode reads a file of YAML.
func decode(t *testing.T, file string, into any, unmarshal func([]byte, any, ...yaml.JSONOpt) error) {
	t.Helper()
	if err := unmarshal([]byte(read(t, file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
