package ship_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// shipped is the path of a folder of deploy/kustomize.
func shipped(t *testing.T, folder string) string {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "..", "deploy", "kustomize", folder)
}

// An overlay is what an operator writes over what is shipped.
type overlay struct {
	Resources  []string          `json:"resources"`            // folders of deploy/kustomize
	Components []string          `json:"components,omitempty"` // below its components
	Maps       []configMap       `json:"configMapGenerator,omitempty"`
	Files      map[string]string `json:"-"`
}

type configMap struct {
	Name      string   `json:"name"`
	Namespace string   `json:"namespace"`
	Behavior  string   `json:"behavior"`
	Files     []string `json:"files"`
}

// of is the CronJob with components.
func of(components ...string) overlay {
	return overlay{Resources: []string{"cronjob"}, Components: components}
}

// write writes the overlay, and returns its folder.
func (o overlay) write(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	relative := func(folder string) string {
		path, err := filepath.Rel(dir, shipped(t, folder))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	written := overlay{Maps: o.Maps}
	for _, folder := range o.Resources {
		written.Resources = append(written.Resources, relative(folder))
	}
	for _, name := range o.Components {
		written.Components = append(written.Components, relative(filepath.Join("components", name)))
	}
	text, err := yaml.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"kustomization.yaml": string(text)}
	for name, text := range o.Files {
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// kubectl runs kubectl, which must succeed without a warning, and returns what it
// prints.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program(t, "kubectl"), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}

// render has kubectl render a folder.
func render(t *testing.T, folder string) objects {
	t.Helper()
	found := make(objects)
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(kubectl(t, "kustomize", folder)))); ; {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		found.add(t, object)
	}
}
