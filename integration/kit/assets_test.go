package kit_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

func TestRootIsFoundFromAnywhereInTheRepository(t *testing.T) {
	want, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", "..", "../..", "../tools/lint"} {
		t.Run(dir, func(t *testing.T) {
			t.Chdir(dir)
			if got, err := assets.Root(); err != nil || got != want {
				t.Errorf("root %q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestMissingProgramNamesTheTargetThatBuildsIt(t *testing.T) {
	_, err := assets.Path("no-such-program")
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "run make assets: ") {
		t.Errorf("path: %v, want that it does not exist and to run make assets", err)
	}
}

func TestEnvironmentChoosesTheKubernetes(t *testing.T) {
	type environment struct{ server, kubectl string }
	tests := []struct {
		program string
		environment
		folder string // in integration/bin, and in the target of make
	}{
		{"kube-apiserver", environment{server: "1.2"}, "kubernetes-1.2"},
		{"kubectl", environment{server: "1.2"}, "kubernetes-1.2"},
		{"kube-apiserver", environment{server: "1.2", kubectl: "1.3"}, "kubernetes-1.2"},
		{"kubectl", environment{server: "1.2", kubectl: "1.3"}, "kubernetes-1.3"},
		{"kubectl", environment{kubectl: "1.3"}, "kubernetes-1.3"},
	}
	for _, test := range tests {
		t.Setenv(assets.KubernetesVariable, test.server)
		t.Setenv(assets.KubectlVariable, test.kubectl)
		_, err := assets.Path(test.program)
		file := filepath.Join("integration", "bin", test.folder, test.program)
		if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "run make "+file+": ") ||
			!strings.Contains(err.Error(), "/"+file+":") {
			t.Errorf("%s with %+v: %v, want to run make %s", test.program, test.environment, err, file)
		}
	}
}

func TestEnvironmentChoosesNothingElse(t *testing.T) {
	want, err := assets.Path("etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(assets.KubernetesVariable, "1.2")
	if got, err := assets.Path("etcd"); err != nil || got != want {
		t.Errorf("etcd is %s, %v, want %s", got, err, want)
	}
	for _, version := range []string{"1", "v1.37", "1.37.2", "1.37/../..", "latest"} {
		t.Setenv(assets.KubernetesVariable, version)
		want := fmt.Sprintf("IP_REAPER_KUBERNETES is %q, want a minor version such as 1.37", version)
		if path, err := assets.Path("kube-apiserver"); err == nil || err.Error() != want {
			t.Errorf("version %q: %q, %v, want %s", version, path, err, want)
		}
	}
}

func TestModuleDirHoldsTheSource(t *testing.T) {
	dir, err := assets.ModuleDir(t.Context(), "github.com/k8snetworkplumbingwg/whereabouts")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "doc", "crds")); err != nil {
		t.Error(err)
	}
	if dir, err := assets.ModuleDir(t.Context(), "example.com/not/required"); err == nil {
		t.Errorf("a module that is not required lies in %q, want an error", dir)
	}
}

func TestToolModuleDirHoldsTheSource(t *testing.T) {
	const calico = "github.com/projectcalico/calico"
	dir, err := assets.ToolModuleDir(t.Context(), "calico", calico)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "libcalico-go", "config", "crd")); err != nil {
		t.Error(err)
	}
	if dir, err := assets.ToolModuleDir(t.Context(), "whereabouts", calico); err == nil {
		t.Errorf("a module that whereabouts does not require lies in %q, want an error", dir)
	}
}
