package ship_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

const header = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"

// A policy that a page shows, whole or as a piece in a sentence, is one.
func TestPoliciesInPagesAreValid(t *testing.T) {
	var schema struct{ Properties map[string]any }
	text, err := policy.Schema(plugin.Known(backends.All()))
	must(t, err)
	must(t, json.Unmarshal(text, &schema))
	delete(schema.Properties, "apiVersion") // the reports have these two as well
	delete(schema.Properties, "kind")
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
			if _, ok := schema.Properties[field]; ok && rest != "" {
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
