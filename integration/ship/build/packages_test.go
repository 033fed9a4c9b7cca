package build_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// shells are the files of an archive by which shells complete, and the shells' names.
var shells = map[string]string{
	"completions/ip-reaper.bash": "bash",
	"completions/_ip-reaper":     "zsh",
	"completions/ip-reaper.fish": "fish",
	"completions/ip-reaper.ps1":  "powershell",
}

// hasPackages looks at what package managers read of a release. The archive is that of this
// machine's program.
func hasPackages(t *testing.T, c checkout, program, formula string, archive map[string]string) {
	t.Run("completions", func(t *testing.T) {
		for name, shell := range shells {
			if out, err := c.run(program, "completion", shell); err != nil || out != archive[name] {
				t.Errorf("%s is not what the program prints for %s, %v", name, shell, err)
			}
		}
	})
	t.Run("krew installs it", func(t *testing.T) { krewInstalls(t, c) })
	t.Run("the formula installs what is there", func(t *testing.T) { formulaInstalls(t, formula, archive) })
}

// krewInstalls has krew install the plugin from the archive, as from a download, and kubectl
// run it.
func krewInstalls(t *testing.T, c checkout) {
	dist := filepath.Join(c.dir, "dist")
	home := t.TempDir()
	tool(t, "env", "KREW_ROOT="+home, "go", "tool", "krew", "install",
		"--manifest="+filepath.Join(dist, "ip-reaper.yaml"), "--archive="+filepath.Join(dist, binary+".tar.gz"))
	if _, err := os.Stat(filepath.Join(home, "store", "ip-reaper", version, "LICENSE")); err != nil {
		t.Errorf("krew's index wants a licence beside the plugin: %v", err)
	}
	kubectl, err := assets.Path("kubectl")
	must(t, err)
	out, err := c.run("env", "PATH="+filepath.Join(home, "bin"), kubectl, "ip-reaper", "version")
	if want := "ip-reaper " + version + " "; err != nil || !strings.HasPrefix(out, want) {
		t.Errorf("kubectl ip-reaper version: %v, want %q, got\n%s", err, want, out)
	}
}

var installed = regexp.MustCompile(`(?m)^    \w+\.install (?:Dir\[)?"([^"]+)"`)

// formulaInstalls looks whether the archive has what the formula installs. Ruby has parsed it
// when the release was made, if Ruby is there.
func formulaInstalls(t *testing.T, formula string, archive map[string]string) {
	found := installed.FindAllStringSubmatch(formula, -1)
	if len(found) == 0 {
		t.Errorf("it installs nothing:\n%s", formula)
	}
	for _, m := range found {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(archive)), func(name string) bool {
			fits, err := filepath.Match(m[1], name)
			return fits && err == nil
		}) {
			t.Errorf("it installs %s, which the archive does not have", m[1])
		}
	}
}

// krew and Homebrew find the archive of each platform by its address and checksum.
func TestPackagesNameEachPlatform(t *testing.T) {
	dist := t.TempDir()
	platforms := map[string]string{"darwin_amd64": "on_intel", "darwin_arm64": "on_arm", "linux_amd64": "on_intel", "linux_arm64": "on_arm"}
	for platform := range platforms {
		write(t, filepath.Join(dist, "ip-reaper_"+version+"_"+platform+".tar.gz"), platform)
	}
	write(t, filepath.Join(dist, "ip-reaper_"+version+"_deploy.tar.gz"), "no program")
	tool(t, "go", "run", ".", version, dist)
	tool(t, "go", "tool", "validate-krew-manifest", "-skip-install", "-manifest", filepath.Join(dist, "ip-reaper.yaml"))
	krew, brew := read(t, dist, "ip-reaper.yaml"), read(t, dist, "ip-reaper.rb")
	for platform, block := range platforms {
		os, arch, _ := strings.Cut(platform, "_")
		url := "https://github.com/ip-reaper/ip-reaper/releases/download/" + version + "/ip-reaper_" + version + "_" + platform + ".tar.gz"
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(platform)))
		want := fmt.Sprintf("{os: %s, arch: %s}\n    uri: %s\n    sha256: %s\n", os, arch, url, sum)
		if !strings.Contains(krew, want) {
			t.Errorf("there is no %q in\n%s", want, krew)
		}
		want = fmt.Sprintf("    %s do\n      url \"%s\"\n      sha256 \"%s\"\n", block, url, sum)
		if !strings.Contains(brew, want) {
			t.Errorf("there is no %q in\n%s", want, brew)
		}
	}
}

// tool runs a program in the module of the tools for packages, built as the release builds
// them.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	root, err := assets.Root()
	must(t, err)
	c := checkout{t, filepath.Join(root, "tools", "packages")}
	args = append([]string{"CGO_ENABLED=0", "GOFLAGS=-trimpath", name}, args...)
	if out, err := c.run("env", args...); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// read returns the content of a file.
func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return string(text)
}

// write writes a file.
func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o644))
}
