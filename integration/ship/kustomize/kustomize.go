// Package kustomize writes what an operator writes over the manifests that are shipped, and has
// the real kubectl make objects of it.
package kustomize

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// Shipped is the path of a folder of deploy/kustomize.
func Shipped(t testing.TB, folder string) string {
	t.Helper()
	root, err := assets.Root()
	must(t, err)
	return filepath.Join(root, "..", "deploy", "kustomize", folder)
}

// An Overlay is what an operator writes over what is shipped.
type Overlay struct {
	Resources  []string // folders of deploy/kustomize
	Components []string // below its components
	Policy     string   // in place of the shipped one; empty to keep that
}

// Write writes the overlay, and returns its folder.
func (o Overlay) Write(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	relative := func(folder string) string { // Kustomize takes no absolute paths
		path, err := filepath.Rel(dir, Shipped(t, folder))
		must(t, err)
		return path
	}
	var written struct {
		Resources  []string         `json:"resources"`
		Components []string         `json:"components,omitempty"`
		Maps       []map[string]any `json:"configMapGenerator,omitempty"`
	}
	for _, folder := range o.Resources {
		written.Resources = append(written.Resources, relative(folder))
	}
	for _, name := range o.Components {
		written.Components = append(written.Components, relative(filepath.Join("components", name)))
	}
	files := map[string]string{}
	if o.Policy != "" {
		files["policy.yaml"] = o.Policy
		written.Maps = []map[string]any{
			{"name": "ip-reaper-policy", "namespace": "ip-reaper", "behavior": "replace", "files": []string{"policy.yaml"}},
		}
	}
	text, err := yaml.Marshal(written)
	must(t, err)
	files["kustomization.yaml"] = string(text)
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// Kubectl runs kubectl, which must succeed without a warning, and returns what it prints.
func Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	program, err := assets.Path("kubectl")
	must(t, err)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}

// Build has kubectl make the objects of a folder.
func Build(t testing.TB, folder string) string {
	t.Helper()
	return Kubectl(t, "kustomize", folder)
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
