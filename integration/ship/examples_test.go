package ship_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// definitions are the modules and the files that define the custom resources of GitOps tools. The
// modules are only read: later ones need a later Go.
var definitions = map[string]string{
	"github.com/argoproj/argo-cd/v3@v3.2.1":         "manifests/crds/application-crd.yaml",
	"github.com/fluxcd/kustomize-controller@v1.7.3": "config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml",
	"github.com/fluxcd/source-controller@v1.7.3":    "config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml",
	"github.com/fluxcd/helm-controller@v1.4.3":      "config/crd/bases/helm.toolkit.fluxcd.io_helmreleases.yaml",
}

// The API server takes the examples by the tools' own definitions, strictly.
func TestExamplesOfGitOpsAreValid(t *testing.T) {
	c := fresh(t)
	config := "--kubeconfig=" + c.Kubeconfig
	var paths []string
	for module, file := range definitions {
		paths = append(paths, "--filename="+filepath.Join(moduleDir(t, module), file))
	}
	kubectl(t, append([]string{config, "apply", "--server-side"}, paths...)...)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if out, err := exec.Command(program(t, "kubectl"), append([]string{config, "delete"}, paths...)...).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	for _, namespace := range []string{"argocd", "flux-system"} {
		must(t, c.CreateNamespace(t.Context(), namespace))
	}
	examples, err := filepath.Glob(filepath.Join(root(t), "deploy", "examples", "*", "*.yaml"))
	must(t, err)
	if len(examples) != 3 {
		t.Errorf("%d examples, want 3", len(examples))
	}
	for _, example := range examples {
		cluster.AwaitT(t, example, func() bool {
			return exec.CommandContext(t.Context(), program(t, "kubectl"), config, "apply", "--dry-run=server", "--validate=ignore", "-f", example).Run() == nil
		})
		kubectl(t, config, "apply", "--validate=strict", "--warnings-as-errors", "-f", example)
	}
}

// moduleDir is where the files of a module are, which is downloaded if it is not there.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
	var got struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(out, &got); decodeErr != nil || got.Dir == "" {
		t.Fatalf("download %s: %v, %v %s", module, err, decodeErr, got.Error)
	}
	return got.Dir
}
