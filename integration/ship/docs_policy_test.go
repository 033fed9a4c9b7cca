package ship_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

const header = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"

// A policy that a page shows, whole or as a piece in a sentence, is one.
func TestPoliciesInPagesAreValid(t *testing.T) {
	fields := topFields(t)
	found := 0
	for _, p := range pages(t) {
		var texts []string
		for _, b := range p.blocks {
			if strings.Contains(b.text(), "\nkind: ReapPolicy\n") {
				texts = append(texts, b.text())
			}
		}
		for _, span := range p.spans() {
			field, rest, _ := strings.Cut(span, ": ")
			if slices.Contains(fields, field) && rest != "" {
				texts = append(texts, header+span+"\n")
			}
		}
		found += len(texts)
		for _, text := range texts {
			if _, err := policy.Load([]byte(text), plugin.Known(backends.All())); err != nil {
				t.Errorf("%s: %v\n%s", p.path, err, text)
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d policies found", found)
	}
}

var dotted = regexp.MustCompile(`^\w+(\.[\w<>-]+(\[\])?)+$`)

// policyPage has the table of all fields.
const policyPage = "docs/policy.md"

// A field that a page names is in the schema; and the table of the page has all of
// them, itself or the fields below it.
func TestPolicyFieldsThatAreNamedExist(t *testing.T) {
	fields := schemaFields(t)
	var listed []string
	for _, p := range pages(t) {
		spans := p.spans()
		if p.path == policyPage {
			for _, row := range rows(t, p.path, "field") {
				for _, m := range codeSpan.FindAllStringSubmatch(row[0], -1) {
					listed = append(listed, m[1])
				}
			}
			spans = append(spans, listed...)
		}
		for _, span := range spans {
			top, _, _ := strings.Cut(span, ".")
			ours := dotted.MatchString(span) && slices.Contains(topFields(t), top) || slices.Contains(listed, span)
			if ours && !slices.Contains(fields, normal(span)) {
				t.Errorf("%s names the field %s, which a policy does not have", p.path, span)
			}
		}
	}
	for _, field := range fields {
		has := func(l string) bool { return field == normal(l) || strings.HasPrefix(field, normal(l)+".") }
		above := func(l string) bool { return strings.HasPrefix(normal(l), field+".") }
		if !slices.ContainsFunc(listed, has) && !slices.ContainsFunc(listed, above) && field != "apiVersion" && field != "kind" {
			t.Errorf("the table of the page does not have the field %s", field)
		}
	}
}

// normal is how schemaFields spells a field: the name of a backend is <name>.
func normal(field string) string {
	field = strings.ReplaceAll(field, "[]", "")
	if rest, ok := strings.CutPrefix(field, "backends."); ok {
		name, below, _ := strings.Cut(rest, ".")
		if name == "<name>" {
			name = "calico"
		}
		return strings.TrimSuffix("backends."+name+"."+below, ".")
	}
	return field
}

// topFields are those that a policy has at its top.
func topFields(t testing.TB) []string {
	t.Helper()
	var top []string
	for _, field := range schemaFields(t) {
		if !strings.Contains(field, ".") && field != "apiVersion" && field != "kind" {
			top = append(top, field)
		}
	}
	return top
}

// A schema is as much of a JSON schema as ours uses.
type schema struct {
	Ref        string            `json:"$ref"`
	Defs       map[string]schema `json:"$defs"`
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
}

// schemaFields are all fields of a policy, by their paths. What all backends have is
// taken of calico alone.
func schemaFields(t testing.TB) []string {
	t.Helper()
	var whole schema
	text, err := policy.Schema(plugin.Known(backends.All()))
	must(t, err)
	must(t, json.Unmarshal(text, &whole))
	var all []string
	var walk func(at string, s schema)
	walk = func(at string, s schema) {
		if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
			walk(at, whole.Defs[name])
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			path := strings.TrimPrefix(at+"."+name, ".")
			ofAll := at == "backends" && len(s.Properties[name].Properties) == 1
			if ofAll || strings.HasPrefix(at, "backends.") && name == "enabled" && at != "backends.calico" {
				continue
			}
			all = append(all, path)
			walk(path, s.Properties[name])
		}
		if s.Items != nil {
			walk(at, *s.Items)
		}
	}
	walk("", whole)
	return all
}

// rows returns the cells of the tables of a page whose first heading is that.
func rows(t testing.TB, path, first string) [][]string {
	t.Helper()
	var all [][]string
	for _, p := range pages(t) {
		for _, table := range p.tables() {
			if p.path == path && table[0][0] == first {
				all = append(all, table[1:]...)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no table that begins with %q", path, first)
	}
	return all
}

// column returns the cells below a heading in the tables of all pages.
func column(t testing.TB, heading string) []string {
	t.Helper()
	var all []string
	for _, p := range pages(t) {
		for _, table := range p.tables() {
			for i, head := range table[0] {
				for _, row := range table[1:] {
					if head == heading && i < len(row) {
						all = append(all, row[i])
					}
				}
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no page has a table with the column %q", heading)
	}
	return all
}

// printed returns what ip-reaper prints.
func printed(t testing.TB, args ...string) string {
	t.Helper()
	program, err := assets.Path("ip-reaper")
	must(t, err)
	out, err := exec.CommandContext(t.Context(), program, args...).Output()
	must(t, err)
	return string(out)
}

func same[T any](t testing.TB, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(fmt.Sprint("(-want +got):\n", diff))
	}
}
