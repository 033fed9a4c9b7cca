package kit_test

import (
	"errors"
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
