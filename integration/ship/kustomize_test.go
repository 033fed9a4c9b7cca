package ship_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// shipped is the path of a folder of deploy/kustomize.
func shipped(t *testing.T, folder string) string {
	t.Helper()
	root, err := assets.Root()
	must(t, err)
	return filepath.Join(root, "..", "deploy", "kustomize", folder)
}

// An overlay is what an operator writes over what is shipped.
type overlay struct {
	Resources  []string // folders of deploy/kustomize
	Components []string // below its components
	Policy     string   // in place of the shipped one; empty to keep that
	Namespace  string   // in place of ip-reaper; empty to keep that
	Patches    []string // of objects
	Names      []string // folders of deploy/kustomize that transform the names
}

// write writes the overlay, and returns its folder.
func (o overlay) write(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	relative := func(folder string) string { // Kustomize takes no absolute paths
		path, err := filepath.Rel(dir, shipped(t, folder))
		must(t, err)
		return path
	}
	var written struct {
		Resources  []string         `json:"resources"`
		Components []string         `json:"components,omitempty"`
		Namespace  string           `json:"namespace,omitempty"`
		Names      []string         `json:"transformers,omitempty"`
		Maps       []map[string]any `json:"configMapGenerator,omitempty"`
		Patches    []map[string]any `json:"patches,omitempty"`
		Sort       struct {
			Order string `json:"order"`
		} `json:"sortOptions"`
	}
	for _, folder := range o.Resources {
		written.Resources = append(written.Resources, relative(folder))
	}
	for _, name := range o.Components {
		written.Components = append(written.Components, relative(filepath.Join("components", name)))
	}
	written.Namespace, written.Sort.Order = o.Namespace, "fifo"
	for _, folder := range o.Names {
		written.Names = append(written.Names, relative(folder))
	}
	for _, patch := range o.Patches {
		written.Patches = append(written.Patches, map[string]any{"patch": patch})
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

// sortsTwice is the warning that kubectl gives for sortOptions, since it always has an order of its own.
var sortsTwice = regexp.MustCompile(`(?m)^.* Warning: Sorting order is set both in .*\n`)

// kubectl runs kubectl, which must succeed without another warning, and returns what it prints.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	program, err := assets.Path("kubectl")
	must(t, err)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || sortsTwice.ReplaceAllString(stderr.String(), "") != "" {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}

// build has kubectl make the objects of a folder.
func build(t *testing.T, folder string) string {
	t.Helper()
	return kubectl(t, "kustomize", folder)
}
