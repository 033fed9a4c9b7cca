// Package assets finds the programs that the integration tests and the demo run: real etcd, API
// server, kubectl and CNI plugins, and ip-reaper itself. It gives servers among them a port, and a
// guard by which none outlives the test.
package assets

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/ip-reaper/ip-reaper/integration"

// Root returns the folder of the integration module. It looks upwards, first from the working
// directory and then from the running program's folder, so that tests find it in any package, and
// the demo finds it from the repository's root.
func Root() (string, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, start := range starts {
		for dir := start; ; dir = filepath.Dir(dir) {
			for _, candidate := range []string{dir, filepath.Join(dir, "integration")} {
				if isRoot(candidate) {
					return candidate, nil
				}
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("no module %s at or above %s", module, strings.Join(starts, " or "))
}

func isRoot(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return strings.TrimSpace(string(first)) == "module "+module
}

// KubebuilderVariable names the folder that setup-envtest fills with the Kubebuilder programs. If it is
// set, these are used in place of those that the Makefile builds.
const KubebuilderVariable = "KUBEBUILDER_ASSETS"

// Kubebuilder are those programs.
var Kubebuilder = []string{"etcd", "kube-apiserver", "kubectl"}

// Path returns the absolute path of a program in integration/bin, or of the API server or kubectl
// that KubernetesVariable and KubectlVariable choose. If the program does not exist, the error says
// which make target builds it.
func Path(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	folder, err := folder(name)
	if err != nil {
		return "", err
	}
	if dir := os.Getenv(KubebuilderVariable); dir != "" && folder == "" && slices.Contains(Kubebuilder, name) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", KubebuilderVariable, err)
		}
		return filepath.Abs(path)
	}
	path := filepath.Join(root, "bin", folder, name)
	if _, err := os.Stat(path); err != nil {
		target := "assets"
		switch {
		case name == "ip-reaper":
			target = "build"
		case folder != "":
			target = filepath.Join("integration", "bin", folder, name)
		}
		return "", fmt.Errorf("run make %s: %w", target, err)
	}
	return path, nil
}

// ModuleDir returns the source folder of a module that this one requires, at the required version.
func ModuleDir(ctx context.Context, path string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return moduleDir(ctx, root, path)
}

// ToolModuleDir is ModuleDir for a module that the named tools module requires: what its program
// was built from.
func ToolModuleDir(ctx context.Context, tools, path string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return moduleDir(ctx, filepath.Join(root, "tools", tools), path)
}

// moduleDir asks go for the module, which downloads it if necessary: the programs may be older than
// the module cache.
func moduleDir(ctx context.Context, in, path string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	cmd.Dir = in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &module); err == nil {
		err = jsonErr
	}
	if err != nil {
		return "", fmt.Errorf("find module %s: %w: %s%s", path, err, module.Error, bytes.TrimSpace(stderr.Bytes()))
	}
	return module.Dir, nil
}
