// Command packages writes what package managers read of a release, beside the archives in
// DIST: krew's manifest and Homebrew's formula.
//
//	packages VERSION DIST
package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

const homepage = "https://github.com/ip-reaper/ip-reaper"

//go:embed *.tmpl
var texts embed.FS

// A release is what the templates say of one.
type release struct {
	Version  string // such as v1.2.3
	Archives []archive
}

// An archive is the program for one platform, as it is handed out.
type archive struct {
	OS, Arch string // as Go names them
	URL      string
	SHA256   string // in hexadecimal digits
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: packages VERSION DIST")
	}
	r := release{Version: args[0]}
	var err error
	if r.Archives, err = archivesIn(args[1], r.Version); err != nil {
		return err
	}
	parsed, err := template.ParseFS(texts, "*.tmpl")
	if err != nil {
		return err
	}
	// krew wants the file to be called like the plugin.
	return errors.Join(
		write(parsed.Lookup("krew.yaml.tmpl"), filepath.Join(args[1], "ip-reaper.yaml"), r),
		write(parsed.Lookup("formula.rb.tmpl"), filepath.Join(args[1], "ip-reaper.rb"), r),
	)
}

// Of returns the archives for an operating system.
func (r release) Of(system string) []archive {
	var all []archive
	for _, a := range r.Archives {
		if a.OS == system {
			all = append(all, a)
		}
	}
	return all
}

// Number is the version without its v.
func (r release) Number() string { return strings.TrimPrefix(r.Version, "v") }

// write writes a file by its template.
func write(text *template.Template, path string, r release) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(text.Execute(file, r), file.Close())
}

// archivesIn returns the archives of a release, by the names of their files. An error is
// returned if there is none.
func archivesIn(dist, version string) ([]archive, error) {
	prefix := "ip-reaper_" + version + "_"
	paths, err := filepath.Glob(filepath.Join(dist, prefix+"*_*.tar.gz"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no archive of %s", dist, version)
	}
	var all []archive
	for _, path := range paths {
		name := filepath.Base(path)
		system, arch, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(name, prefix), ".tar.gz"), "_")
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		all = append(all, archive{
			OS: system, Arch: arch,
			URL:    homepage + "/releases/download/" + version + "/" + name,
			SHA256: hex.EncodeToString(sum[:]),
		})
	}
	return all, nil
}
