package main

import (
	"bytes"
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed formula.rb.tmpl
var formula string

// The blocks of a formula that hold for an operating system and for an architecture, by
// Go's names for these.
var blocks = map[string]string{
	"darwin": "on_macos", "linux": "on_linux",
	"arm64": "on_arm", "amd64": "on_intel",
}

// A system is a block of a formula, with the archives for that operating system.
type system struct {
	Block    string
	Archives []archive
}

// Block is that of the archive's architecture.
func (a archive) Block() string { return blocks[a.Arch] }

// writeFormula writes the formula. It has the archives for which Homebrew has a block, and
// leaves out a system for which there is none.
func writeFormula(dist, version string, archives []archive) error {
	var systems []system
	for _, name := range []string{"darwin", "linux"} {
		s := system{Block: blocks[name]}
		for _, a := range archives {
			if a.OS == name && a.Block() != "" {
				s.Archives = append(s.Archives, a)
			}
		}
		if len(s.Archives) > 0 {
			systems = append(systems, s)
		}
	}
	parsed, err := template.New("formula").Parse(formula)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	err = parsed.Execute(&text, map[string]any{
		"Description": description, "Homepage": homepage,
		"Version": strings.TrimPrefix(version, "v"), "Systems": systems,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dist, "ip-reaper.rb"), text.Bytes(), 0o644)
}
