package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// noResource is the line of a machine without CAP_SYS_RESOURCE, number 24.
const noResource = "Name:\tx\nCapEff:\t0000000000000000\nCapBnd:\t000001fffeffffff\nCapAmb:\t0000000000000000\n"

func TestBoundingSet(t *testing.T) {
	got, err := boundingSet(noResource)
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for name, has := range got {
		if !has {
			missing = append(missing, name)
		}
	}
	if diff := cmp.Diff([]string{"CAP_SYS_RESOURCE"}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	for _, status := range []string{"", "CapEff:\t00\n", "CapBnd:\tnone\n"} {
		if _, err := boundingSet(status); err == nil {
			t.Errorf("boundingSet(%q) is no error", status)
		}
	}
}

func TestSpecFile(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, ""},
		{"containerd creates", []string{"--root", "/run/runc/moby", "--log", "/b/log.json", "--log-format", "json", "create", "--bundle", "/b", "--pid-file", "/b/init.pid", "id"}, "/b/config.json"},
		{"joined by an equals sign", []string{"--root=/run", "--systemd-cgroup", "run", "--bundle=/b", "id"}, "/b/config.json"},
		{"short", []string{"run", "-b", "/b", "id"}, "/b/config.json"},
		{"the working directory", []string{"run", "id"}, "config.json"},
		{"containerd executes", []string{"--root", "create", "exec", "--process", "/tmp/process1", "--detach", "id"}, "/tmp/process1"},
		{"executes without a file", []string{"exec", "id", "sh"}, ""},
		{"a flag without its value", []string{"run", "--bundle"}, "config.json"},
		{"starts nothing new", []string{"--root", "/run", "delete", "--force", "id"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := specFile(tt.args); got != tt.want {
				t.Errorf("specFile = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBoundRemovesOnlyWhatIsMissing(t *testing.T) {
	bounding, err := boundingSet(noResource)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, spec, want string }{
		{
			"a container",
			`{"process":{"capabilities":{"bounding":["CAP_KILL","CAP_SYS_RESOURCE"],"ambient":["CAP_SYS_RESOURCE"]},"args":["a"]},"linux":{"n":9223372036854775807}}`,
			`{"linux":{"n":9223372036854775807},"process":{"args":["a"],"capabilities":{"ambient":[],"bounding":["CAP_KILL"]}}}`,
		},
		{
			"a process",
			`{"capabilities":{"effective":["CAP_SYS_RESOURCE","CAP_BPF"]},"cwd":"/"}`,
			`{"capabilities":{"effective":["CAP_BPF"]},"cwd":"/"}`,
		},
		{
			"a capability that is not known here",
			`{"capabilities":{"effective":["CAP_TOMORROW"]}}`,
			`{"capabilities":{"effective":["CAP_TOMORROW"]}}`,
		},
		{"none", `{"process":{"args":["a"]}}`, `{"process":{"args":["a"]}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.json")
			if err := os.WriteFile(file, []byte(tt.spec), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := bound(file, bounding); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(text)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}
