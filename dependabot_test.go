package main_test

import (
	"io/fs"
	"path"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// Each module is renewed, by exactly one entry.
func TestDependenciesAreRenewed(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string `json:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	decode(t, ".github/dependabot.yml", &config, yaml.Unmarshal)
	folders := map[string][]string{}
	for _, u := range config.Updates {
		folders[u.Ecosystem] = append(folders[u.Ecosystem], u.Directories...)
		if u.Directory != "" {
			folders[u.Ecosystem] = append(folders[u.Ecosystem], u.Directory)
		}
	}
	wants := func(ecosystem, folder string) {
		n := 0
		for _, pattern := range folders[ecosystem] {
			if ok, err := path.Match(pattern, folder); ok && err == nil {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d entries of %s renew %s, want 1", n, ecosystem, folder)
		}
	}
	wants("github-actions", "/")
	wants("docker", "/")
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(file) == "go.mod" {
			wants("gomod", path.Join("/", filepath.ToSlash(filepath.Dir(file))))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
