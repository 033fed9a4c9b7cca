package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const changesDir = "docs/changes"

// Each change is a file that changie takes as it is.
func TestChangesAreOneFileEach(t *testing.T) {
	var config struct {
		Kinds []struct{ Label string }
	}
	decode(t, filepath.Join(changesDir, "changie.yaml"), &config, yaml.Unmarshal)
	var kinds []string
	for _, k := range config.Kinds {
		kinds = append(kinds, k.Label)
	}
	entries, err := os.ReadDir(filepath.Join(changesDir, "unreleased"))
	if err != nil && !os.IsNotExist(err) { // there is none right after a release
		t.Fatal(err)
	}
	times := map[string]string{}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			if filepath.Ext(entry.Name()) != ".yaml" {
				t.Fatal("the name does not end in .yaml, so that the change would be passed over")
			}
			var change struct{ Kind, Body, Time string }
			decode(t, filepath.Join(changesDir, "unreleased", entry.Name()), &change, yaml.UnmarshalStrict)
			if !slices.Contains(kinds, change.Kind) {
				t.Errorf("kind: %q, want one of %q", change.Kind, kinds)
			}
			if _, err := time.Parse(time.RFC3339, change.Time); err != nil {
				t.Errorf("time: %v; `date -u +%%FT%%TZ` prints one", err)
			}
			if other, ok := times[change.Time]; ok {
				t.Errorf("time: %s has the same, which leaves their order to chance", other)
			}
			times[change.Time] = entry.Name()
			if !strings.HasSuffix(change.Body, ".") {
				t.Errorf("body: %q is no sentence: no full stop ends it", change.Body)
			}
			for line := range strings.Lines(change.Body) {
				if len(line) > 95 || strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
					t.Errorf("body: %q is longer than 95 or ends in a blank; wrap it as it shall stand in the changelog", line)
				}
			}
		})
	}
}

// decode reads a file of YAML.
func decode(t *testing.T, file string, into any, unmarshal func([]byte, any, ...yaml.JSONOpt) error) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// The changelog is made of the versions, and is not edited itself.
func TestChangelogHoldsTheVersions(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	changelog := read("CHANGELOG.md")
	rest, ok := strings.CutPrefix(changelog, read(filepath.Join(changesDir, "header.md")))
	if !ok {
		t.Error("CHANGELOG.md does not begin with docs/changes/header.md: make changelog writes it")
	}
	versions, err := filepath.Glob(filepath.Join(changesDir, "v*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range versions {
		text := strings.TrimSpace(read(file))
		if !strings.Contains(rest, text) {
			t.Errorf("CHANGELOG.md does not have %s as it is: make changelog writes it", file)
		}
		rest = strings.Replace(rest, text, "", 1)
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		t.Errorf("CHANGELOG.md has what is no version in %s: %q; a change is a file in %[1]s/unreleased", changesDir, rest)
	}
}
