package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A form is what the hosting asks of who opens an issue. It shows no form that has a field
// which it does not know.
type form struct {
	Name, Description, Title string
	Labels                   []string
	Body                     []struct {
		Type, ID   string
		Attributes struct {
			Label, Description, Value, Render string
			Multiple                          bool
			Options                           []any
		}
		Validations struct{ Required bool }
	}
}

func TestIssueFormsAreShown(t *testing.T) {
	files, err := filepath.Glob(".github/ISSUE_TEMPLATE/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == "config.yml" {
			continue
		}
		var f form
		decode(t, file, &f, yaml.UnmarshalStrict)
		if f.Name == "" || f.Description == "" || len(f.Labels) == 0 || len(f.Body) == 0 {
			t.Errorf("%s: it lacks a name, a description, a label or its body", file)
		}
		ids := map[string]bool{}
		for _, field := range f.Body {
			switch a := field.Attributes; field.Type {
			case "markdown":
				if a.Value == "" || field.ID != "" {
					t.Errorf("%s: a text needs a value, and has no id", file)
				}
				continue
			case "textarea", "input":
			case "dropdown", "checkboxes":
				if len(a.Options) == 0 {
					t.Errorf("%s: %s has no options", file, field.ID)
				}
			default:
				t.Errorf("%s: %s has the type %q, which is none", file, field.ID, field.Type)
			}
			if field.Attributes.Label == "" || field.ID == "" || ids[field.ID] {
				t.Errorf("%s: field %q has no label, no id or that of another", file, field.ID)
			}
			ids[field.ID] = true
		}
	}
}

var ourFile = regexp.MustCompile(`https://github\.com/ip-reaper/ip-reaper/blob/main/([\w./-]+)`)

// What the hosting shows leads to files that are there.
func TestLinksOfTheHostingLeadSomewhere(t *testing.T) {
	files, err := filepath.Glob(".github/*/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ourFile.FindAllStringSubmatch(string(text), -1) {
			found++
			if _, err := os.Stat(strings.TrimSuffix(m[1], ".")); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if found == 0 {
		t.Error("no link is found: is the address another?")
	}
}
