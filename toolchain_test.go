package main_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// One Go builds everything: the one that go.mod names as toolchain. The other modules name the same one,
// and Dockerfile and workflows read go.mod.
func TestEveryBuildTakesTheToolchainOfTheModule(t *testing.T) {
	toolchain := regexp.MustCompile(`(?m)^toolchain go[0-9.]+$`)
	want := toolchain.FindString(read(t, "go.mod"))
	if want == "" {
		t.Fatal("go.mod names no toolchain")
	}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "go.mod" {
			if got := toolchain.FindString(read(t, file)); got != want {
				t.Errorf("%s has %q, go.mod has %q: go mod edit -toolchain", file, got, want)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read(t, "Dockerfile"), "\nENV GOTOOLCHAIN=auto\n") {
		t.Error("Dockerfile: the Go of its base image does not download the one of go.mod")
	}
	for at, step := range steps(t) {
		if strings.HasPrefix(step.Uses, "actions/setup-go@") && step.With["go-version-file"] != "go.mod" {
			t.Errorf("%s takes its Go not from go.mod: %v", at, step.With)
		}
	}
}
