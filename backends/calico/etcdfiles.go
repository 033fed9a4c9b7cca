package calico

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// serviceAccountDirs hold the token of the pod's service account. A file in them must
// not become a credential of another server.
var serviceAccountDirs = []string{"/var/run/secrets/kubernetes.io", "/run/secrets/kubernetes.io"}

// A namedFile is a file and the variable that names it. An empty path means no file.
type namedFile struct{ variable, path string }

// readFiles returns the contents of files, in their order, and nil where there is no
// file. It returns an error, and opens no file, if one of them is in a forbidden
// directory by its name, or after all symbolic links are resolved.
func readFiles(forbidden []string, files ...namedFile) ([][]byte, error) {
	resolved := make([]string, len(files))
	for i, file := range files {
		if file.path == "" {
			continue
		}
		var err error
		if resolved[i], err = resolve(file.path, forbidden); err != nil {
			return nil, fmt.Errorf("%s: %w", file.variable, err)
		}
	}
	contents := make([][]byte, len(files))
	for i, file := range files {
		if file.path == "" {
			continue
		}
		var err error
		// The resolved name is the one that was checked.
		if contents[i], err = os.ReadFile(resolved[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", file.variable, err)
		}
	}
	return contents, nil
}

// resolve returns the absolute name of a file without symbolic links.
func resolve(path string, forbidden []string) (string, error) {
	refusal := fmt.Errorf("%s is of the pod's service account: name another file", path)
	cleaned, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if within(cleaned, forbidden) {
		return "", refusal
	}
	// The name is not cleaned first: behind a link, .. leads elsewhere.
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if resolved, err = filepath.Abs(resolved); err != nil {
		return "", err
	}
	for _, dir := range forbidden {
		if linked, err := filepath.EvalSymlinks(dir); err == nil {
			forbidden = append(slices.Clip(forbidden), linked)
		}
	}
	if within(resolved, forbidden) {
		return "", refusal
	}
	return resolved, nil
}

// within reports whether a clean path is one of the directories, or below it.
func within(path string, dirs []string) bool {
	for _, dir := range dirs {
		if path == dir || strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}
