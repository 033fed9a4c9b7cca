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

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

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
func hasPackages(t *testing.T, c checkout, files, archive map[string]string) {
	t.Run("completions", func(t *testing.T) { hasCompletions(t, c, archive) })
	t.Run("krew installs it", func(t *testing.T) { krewInstalls(t, c) })
	t.Run("the formula installs what is there", func(t *testing.T) { formulaInstalls(t, files["ip-reaper.rb"], archive) })
	t.Run("Artifact Hub reads the chart", func(t *testing.T) {
		artifactHubReadsTheChart(t, c, files["ip-reaper-"+strings.TrimPrefix(version, "v")+".tgz"])
	})
}

// hasCompletions looks whether an archive has, for each shell, what its program prints.
func hasCompletions(t *testing.T, c checkout, archive map[string]string) {
	program := filepath.Join(t.TempDir(), "ip-reaper")
	if err := os.WriteFile(program, []byte(archive["ip-reaper"]), 0o755); err != nil {
		t.Fatal(err)
	}
	got := maps.Clone(archive)
	maps.DeleteFunc(got, func(name, _ string) bool {
		return !strings.HasPrefix(name, "completions/") || strings.HasSuffix(name, "/")
	})
	want := map[string]string{}
	for name, shell := range shells {
		out, err := c.run(program, "completion", shell)
		if err != nil {
			t.Fatalf("completion %s: %v\n%s", shell, err, out)
		}
		want[name] = out
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("completions (-want +got):\n%s", diff)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.run("env", "PATH="+filepath.Join(home, "bin"), kubectl, "ip-reaper", "version")
	if want := "ip-reaper " + version + " "; err != nil || !strings.HasPrefix(out, want) {
		t.Errorf("kubectl ip-reaper version: %v, want %q, got\n%s", err, want, out)
	}
}

var (
	download  = regexp.MustCompile(`(?m)^ +url "(\S+)"\n +sha256 "([0-9a-f]{64})"$`)
	installed = regexp.MustCompile(`(?m)^    \w+\.install (?:Dir\[)?"([^"]+)"`)
	opens     = regexp.MustCompile(`(?m)^ *(class .*|def .*|.* do)$`)
	ends      = regexp.MustCompile(`(?m)^ *end$`)
)

// formulaInstalls looks whether the formula installs what the archive has. Ruby has parsed
// it when the release was made, if Ruby is there.
func formulaInstalls(t *testing.T, formula string, archive map[string]string) {
	if strings.Count(formula, "\nclass ") != 0 || !strings.HasPrefix(formula, "class IpReaper < Formula\n") {
		t.Errorf("it is not the class that Homebrew looks for:\n%s", formula)
	}
	if o, e := len(opens.FindAllString(formula, -1)), len(ends.FindAllString(formula, -1)); o != e {
		t.Errorf("it opens %d blocks and ends %d:\n%s", o, e, formula)
	}
	var patterns []string
	for _, m := range installed.FindAllStringSubmatch(formula, -1) {
		patterns = append(patterns, m[1])
	}
	wanted := slices.Concat([]string{"ip-reaper", "THIRD_PARTY_NOTICES", "man/*.1"}, slices.Collect(maps.Keys(shells)))
	slices.Sort(patterns)
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, patterns); diff != "" {
		t.Errorf("it installs (-want +got):\n%s", diff)
	}
	for _, pattern := range patterns {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(archive)), func(name string) bool {
			fits, err := filepath.Match(pattern, name)
			return fits && err == nil
		}) {
			t.Errorf("it installs %s, which the archive does not have", pattern)
		}
	}
}

// The manifests name the archive of each platform by its address and checksum, each once.
func TestPackagesNameEachPlatform(t *testing.T) {
	for _, platforms := range [][]string{
		{"linux_amd64"},
		{"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"},
	} {
		t.Run(strings.Join(platforms, " "), func(t *testing.T) {
			dist := t.TempDir()
			want := map[string]string{}
			for _, platform := range platforms {
				name := "ip-reaper_" + version + "_" + platform + ".tar.gz"
				write(t, filepath.Join(dist, name), platform)
				want["https://github.com/ip-reaper/ip-reaper/releases/download/"+version+"/"+name] =
					fmt.Sprintf("%x", sha256.Sum256([]byte(platform)))
			}
			write(t, filepath.Join(dist, "ip-reaper_"+version+"_deploy.tar.gz"), "no program")
			tool(t, "go", "run", ".", "manifests", version, dist)
			tool(t, "go", "tool", "validate-krew-manifest", "-skip-install", "-manifest", filepath.Join(dist, "ip-reaper.yaml"))

			var plugin struct {
				Spec struct {
					Platforms []struct {
						URI, SHA256 string
						Selector    struct{ MatchLabels struct{ OS, Arch string } }
					}
				}
			}
			if err := yaml.Unmarshal([]byte(read(t, dist, "ip-reaper.yaml")), &plugin); err != nil {
				t.Fatal(err)
			}
			krew, brew := map[string]string{}, map[string]string{}
			for _, p := range plugin.Spec.Platforms {
				krew[p.URI] = p.SHA256
				if labels := p.Selector.MatchLabels; !strings.Contains(p.URI, "_"+labels.OS+"_"+labels.Arch+".") {
					t.Errorf("krew takes %s for %s/%s", p.URI, labels.OS, labels.Arch)
				}
			}
			formula := read(t, dist, "ip-reaper.rb")
			for _, m := range download.FindAllStringSubmatch(formula, -1) {
				brew[m[1]] = m[2]
			}
			if diff := cmp.Diff(want, krew); diff != "" {
				t.Errorf("krew (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, brew); diff != "" {
				t.Errorf("Homebrew (-want +got):\n%s", diff)
			}
			for block, mark := range map[string]string{"on_macos": "_darwin_", "on_linux": "_linux_"} {
				_, inside, found := strings.Cut(formula, "  "+block+" do\n")
				inside, _, _ = strings.Cut(inside, "\n  end\n")
				if n := strings.Count(strings.Join(platforms, " _"), strings.Trim(mark, "_")); found != (n > 0) || strings.Count(inside, mark) != n {
					t.Errorf("%s does not have the %d archives of %s:\n%s", block, n, mark, formula)
				}
			}
		})
	}
}

// tool runs a program in the module of the tools for packages, built as the release builds
// them.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	c := checkout{t, filepath.Join(root, "tools", "packages")}
	args = append([]string{"CGO_ENABLED=0", "GOFLAGS=-trimpath", name}, args...)
	if out, err := c.run("env", args...); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}
