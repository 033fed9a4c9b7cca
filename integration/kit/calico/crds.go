package calico

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// CRDs returns the folder of the custom resource definitions shipped with the version of Calico
// that runs here, all of crd.projectcalico.org/v1.
func CRDs(ctx context.Context) (string, error) {
	dir, err := assets.ToolModuleDir(ctx, "calico", "github.com/projectcalico/calico")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "libcalico-go", "config", "crd"), nil
}

// LooseCRDs writes the definitions to dir, changed so that an API server keeps fields that this
// version of Calico does not know, in blocks, handles and everything else, instead of dropping
// them.
func LooseCRDs(ctx context.Context, dir string) error {
	from, err := CRDs(ctx)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return fmt.Errorf("decode %s: %w", file, err)
		}
		loosen(crd["spec"])
		if text, err = yaml.Marshal(crd); err != nil {
			return fmt.Errorf("encode %s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// loosen marks every object of a schema that lists its fields.
func loosen(schema any) {
	switch schema := schema.(type) {
	case []any:
		for _, item := range schema {
			loosen(item)
		}
	case map[string]any:
		for _, value := range schema {
			loosen(value)
		}
		if _, ok := schema["properties"].(map[string]any); ok && schema["type"] == "object" {
			schema["x-kubernetes-preserve-unknown-fields"] = true
		}
	}
}
