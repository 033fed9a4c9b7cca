package build_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// A release fails where a program links what it may not, or nobody knows whether it may.
func TestNoticesAreOfAllThatIsLinked(t *testing.T) {
	notices := built(t, "release", ".")
	dir, err := assets.ToolModuleDir(t.Context(), "release", "github.com/google/licenseclassifier/v2")
	must(t, err)
	licence := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, "assets/License", name))
		must(t, err)
		return "Copyright 2026 Somebody\n\n" + string(text)
	}
	mit, gpl := licence("MIT/pristine.txt"), licence("GPL-2.0/license.txt")
	for _, tt := range []struct {
		name  string
		files map[string]string // of the module that is linked
		want  []string          // in the notices, or in the error
		fails bool
	}{
		{name: "a licence and a notice", files: map[string]string{"LICENSE.md": mit, "NOTICE": "Somebody wrote this.\n"},
			want: []string{"example.com/linked v1.0.0: MIT\n", "    LICENSE.md: text ", "    NOTICE: text ", "Permission is hereby granted", "Somebody wrote this.", "std go1."}},
		{name: "no licence", files: map[string]string{"README.md": mit},
			want: []string{"example.com/linked v1.0.0 has no licence"}, fails: true},
		{name: "a licence that nobody knows", files: map[string]string{"LICENSE": "You may look at this on Tuesdays.\n"},
			want: []string{"example.com/linked v1.0.0: LICENSE is no known licence"}, fails: true},
		{name: "a licence that is not allowed", files: map[string]string{"COPYING": gpl},
			want: []string{"example.com/linked v1.0.0: COPYING is GPL-2.0, which is not allowed"}, fails: true},
		{name: "one of two is not allowed", files: map[string]string{"LICENSE": mit, "LICENSE.other": gpl},
			want: []string{"LICENSE.other is GPL-2.0, which is not allowed"}, fails: true},
		{name: "a package that is linked is not allowed", files: map[string]string{"LICENSE": mit, "used/LICENSE": gpl},
			want: []string{"used/LICENSE is GPL-2.0, which is not allowed"}, fails: true},
		{name: "a package that is not linked is not allowed", files: map[string]string{"LICENSE": mit, "unused/LICENSE": gpl},
			want: []string{"example.com/linked v1.0.0: MIT\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{
				"go.mod":              "module example.com/m\n\ngo 1.26\n\nrequire example.com/linked v1.0.0\n\nreplace example.com/linked v1.0.0 => ./linked\n",
				"main.go":             "package main\n\nimport \"example.com/linked/used\"\n\nfunc main() { used.Do() }\n",
				"linked/go.mod":       "module example.com/linked\n\ngo 1.26\n",
				"linked/used/used.go": "package used\n\nfunc Do() {}\n", "linked/unused/unused.go": "package unused\n",
			}
			for name, text := range tt.files {
				files["linked/"+name] = text
			}
			c := written(t, files)
			if out, err := c.run("go", "build", "-o", "program", "."); err != nil {
				t.Fatalf("go build: %v\n%s", err, out)
			}
			out, err := c.run(notices, "notices", "notices.txt", "program")
			if (err != nil) != tt.fails {
				t.Errorf("notices: %v\n%s", err, out)
			}
			text, err := os.ReadFile(filepath.Join(c.dir, "notices.txt"))
			if (err != nil) != tt.fails {
				t.Errorf("notices were written: %t, want %t", err == nil, !tt.fails)
			}
			for _, want := range tt.want {
				if !strings.Contains(out+string(text), want) {
					t.Errorf("there is no %q in\n%s%s", want, out, text)
				}
			}
			if strings.Contains(string(text), "GNU GENERAL PUBLIC LICENSE") {
				t.Error("the notices are of a package that is not linked")
			}
		})
	}
}

// written returns a folder with these files.
func written(t *testing.T, files map[string]string) checkout {
	t.Helper()
	c := checkout{t, t.TempDir()}
	for name, text := range maps.All(files) {
		path := filepath.Join(c.dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return c
}

// built builds a package of a module of tools, and returns where the program lies.
func built(t *testing.T, module, pkg string) string {
	t.Helper()
	root, err := assets.Root()
	must(t, err)
	program := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, pkg)
	cmd.Dir = filepath.Join(root, "tools", module)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return program
}
