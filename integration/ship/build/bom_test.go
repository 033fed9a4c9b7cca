package build_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const provenance = "provenance.intoto.json"

// checkSBOM looks for the parts that the program has for sure, and returns all that are
// said to be in it, as "path version".
func checkSBOM(t *testing.T, text string) []string {
	t.Helper()
	var bom struct {
		BOMFormat    string
		SerialNumber string
		Metadata     struct {
			Timestamp string
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version string }
	}
	parse(t, text, &bom)
	if bom.BOMFormat != "CycloneDX" || bom.SerialNumber != "" || bom.Metadata.Timestamp != "" {
		t.Errorf("SBOM: format %q, serial number %q, time %q, want CycloneDX without either", bom.BOMFormat, bom.SerialNumber, bom.Metadata.Timestamp)
	}
	if c := bom.Metadata.Component; c.Name != program || c.Version != version {
		t.Errorf("SBOM: it is of %s %s", c.Name, c.Version)
	}
	var names, linked []string
	for _, c := range bom.Components {
		names, linked = append(names, c.Name), append(linked, c.Name+" "+c.Version)
	}
	for _, want := range []string{"std", "k8s.io/client-go", "go.etcd.io/etcd/client/v3"} {
		if !slices.Contains(names, want) {
			t.Errorf("SBOM: %s is not in it: %q", want, names)
		}
	}
	slices.Sort(linked)
	return linked
}

// checkNotices looks whether each module has its licence, and the texts are there.
func checkNotices(t *testing.T, text string, linked []string) {
	t.Helper()
	for _, module := range append(linked, "Text 1", "Apache License", "Copyright 2009 The Go Authors") {
		if !strings.Contains(text, module) {
			t.Errorf("the notices do not have %q", module)
		}
	}
}

// checkProvenance looks whether it is of all files, and of the commit.
func checkProvenance(t *testing.T, files map[string]string, commit string) {
	t.Helper()
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest map[string]string }
			}
			RunDetails struct {
				Builder  struct{ ID string }
				Metadata struct{ StartedOn string }
			}
		}
	}
	parse(t, files[provenance], &statement)
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("provenance: it is %s with %s", statement.Type, statement.PredicateType)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, s := range statement.Subject {
		got[s.Name] = s.Digest["sha256"]
	}
	for name, text := range maps.All(files) {
		if name != provenance && !strings.HasSuffix(name, ".minisig") {
			want[name] = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	p := statement.Predicate
	if deps := p.BuildDefinition.ResolvedDependencies; len(deps) == 0 || deps[0].Digest["gitCommit"] != commit {
		t.Errorf("provenance: it is of %+v, want %s", deps, commit)
	}
	if p.RunDetails.Builder.ID == "" || p.RunDetails.Metadata.StartedOn != committed {
		t.Errorf("provenance: the builder is %q, the time %s, want one, and %s", p.RunDetails.Builder.ID, p.RunDetails.Metadata.StartedOn, committed)
	}
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	must(t, json.Unmarshal([]byte(text), into))
}
