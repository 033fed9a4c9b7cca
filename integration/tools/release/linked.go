package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// A module is one that a program links.
type module struct {
	path, version string
	dir           string   // where its sources lie
	packages      []string // the folders of the packages that are linked
}

// linked returns the modules that the programs link, sorted. The sources that the programs
// are built from lie in the working directory.
func linked(programs []string) ([]*module, error) {
	modules := map[string]*module{}
	for _, program := range programs {
		if err := add(modules, program); err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
	}
	for _, m := range modules {
		slices.Sort(m.packages)
		m.packages = slices.Compact(m.packages)
	}
	return slices.SortedFunc(maps.Values(modules), func(a, b *module) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version))
	}), nil
}

// add adds what one program links. The program says which modules those are, and go list
// where they lie; both have to agree.
func add(modules map[string]*module, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	listed, err := list(info.Settings)
	if err != nil {
		return err
	}
	add := func(path, version string) error {
		found := listed[path]
		if found == nil || len(found.packages) == 0 {
			return fmt.Errorf("it links %s %s, and go list names no package of it", path, version)
		}
		if found.version != version {
			return fmt.Errorf("it links %s %s, and go list names %s", path, version, found.version)
		}
		key := path + " " + version
		if known := modules[key]; known != nil {
			found.packages = append(found.packages, known.packages...)
		}
		modules[key] = found
		return nil
	}
	errs := []error{add("std", info.GoVersion)}
	for _, dep := range info.Deps {
		errs = append(errs, add(dep.Path, dep.Version))
	}
	return errors.Join(errs...)
}

// list returns the modules of the packages that go list names for a build with these
// settings, by path.
func list(settings []debug.BuildSetting) (map[string]*module, error) {
	args, env := []string{"list", "-deps", "-json=Dir,Standard,Module"}, os.Environ()
	for _, s := range settings {
		switch {
		case s.Key == "-tags":
			args = append(args, "-tags", s.Value)
		case !strings.HasPrefix(s.Key, "-"):
			env = append(env, s.Key+"="+s.Value) // GOOS, GOARCH, CGO_ENABLED
		}
	}
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, goVersion, err := toolchain()
	if err != nil {
		return nil, err
	}
	modules := map[string]*module{"std": {path: "std", version: goVersion, dir: root}}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct{ Path, Version, Dir string }
		}
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return modules, nil
		case err != nil:
			return nil, err
		case p.Standard:
			modules["std"].packages = append(modules["std"].packages, p.Dir)
		case p.Module != nil:
			m := modules[p.Module.Path]
			if m == nil {
				m = &module{path: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir}
				modules[m.path] = m
			}
			m.packages = append(m.packages, p.Dir)
		}
	}
}

// toolchain returns where the standard library lies, and the version of Go.
func toolchain() (root, version string, err error) {
	out, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return "", "", fmt.Errorf("go env: %w", err)
	}
	lines := strings.Split(string(out), "\n")
	return filepath.Clean(lines[0]), lines[1], nil
}
