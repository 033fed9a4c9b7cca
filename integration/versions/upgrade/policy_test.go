package upgrade_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// everyField is the policy that is recorded: it has every field of that day, and hardly any
// default.
const everyField = "every-field.yaml"

// meaning is what a policy means to this version, in JSON.
func meaning(t testing.TB, text []byte) []byte {
	t.Helper()
	p, err := policy.Load(text, plugin.Known(backends.All()))
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, p)
}

// printer is the source of a program that prints what a policy means to the version that it
// is built with.
const printer = `package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	p, err := policy.Load(text, plugin.Known(backends.All()))
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(p); err != nil {
		panic(err)
	}
}
`

// recordPolicy records a policy, and what it means to the version of the recording.
func recordPolicy(t testing.TB, r recording) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", everyField))
	if err != nil {
		t.Fatal(err)
	}
	sources := exported(t, r.revision)
	for _, field := range fieldsOf(t, sources) {
		if !strings.Contains(string(text), field+":") {
			t.Errorf("%s has no %s: add it to testdata/%s", everyField, field, everyField)
		}
	}
	binary, dir := filepath.Join(t.TempDir(), "printer"), filepath.Join(sources, "printer")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(printer), 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, sources, r.revision, binary, "./printer")
	cmd := command(t.Context(), sources, binary)
	cmd.Stdin = strings.NewReader(string(text))
	printed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	r.write(t, "policy", json.RawMessage(printed))
	if err := os.WriteFile(filepath.Join(r.dir, "policy.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// fieldsOf returns the names of all fields of policies, by the schemas of a version.
func fieldsOf(t testing.TB, sources string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(sources, "backends", "*", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range append(files, filepath.Join(sources, "policy", "schema.json")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var schema any
		decode(t, text, &schema)
		all = append(all, properties(schema)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// properties returns the names of all properties of a JSON schema.
func properties(schema any) (all []string) {
	switch schema := schema.(type) {
	case map[string]any:
		named, _ := schema["properties"].(map[string]any)
		for name := range named {
			all = append(all, name)
		}
		for _, part := range schema {
			all = append(all, properties(part)...)
		}
	case []any:
		for _, part := range schema {
			all = append(all, properties(part)...)
		}
	}
	return all
}

// A policy of an earlier version means the same.
func TestRecordedPolicyMeansTheSame(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.revision, func(t *testing.T) {
			wantKept(t, "policy", r.text(t, "policy.json"), meaning(t, r.text(t, "policy.yaml")))
			file := filepath.Join(r.dir, "policy.yaml")
			result, err := current(t).reaper("").Run(t.Context(), "policy", "validate", file)
			if err != nil || result.ExitCode != 0 || result.Stderr != "" {
				t.Errorf("exit code %d, %v, and it says %q", result.ExitCode, err, result.Stderr)
			}
		})
	}
}
