package cri

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// put writes a file for a test, and returns its path.
func put(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEndpointIsFoundAsCrictlFindsIt(t *testing.T) {
	config := put(t, "crictl.yaml", "runtime-endpoint: unix:///config.sock\nimage-endpoint: unix:///image.sock\ntimeout: 10\n")
	silent := put(t, "crictl.yaml", "timeout: 10\n")
	missing := filepath.Join(t.TempDir(), "crictl.yaml")
	first, second := put(t, "first.sock", ""), put(t, "second.sock", "")
	for _, tt := range []struct {
		name         string
		flag, env    string
		typed        string // the configuration named by the user
		config       string // the default one
		sockets      []string
		want, naming string // the endpoint, or what the error names
	}{
		{"the flag counts most", "unix:///flag.sock", "unix:///env.sock", config, "", nil, "unix:///flag.sock", ""},
		{"then the variable", "", "unix:///env.sock", config, "", nil, "unix:///env.sock", ""},
		{"then the default one", "", "", "", config, []string{first}, "unix:///config.sock", ""},
		{"then the socket", "", "", "", silent, []string{missing, second}, "unix://" + second, ""},
		{"one slash", "unix:/flag.sock", "", "", missing, nil, "unix:///flag.sock", ""},

		{"two sockets", "", "", "", missing, []string{first, second}, "", first + ", " + second},
		{"no socket", "", "", "", missing, []string{missing, "/nowhere"}, "", missing + ", /nowhere"},
		{"no configuration where the user named one", "", "", missing, "", []string{first}, "", missing},
		{"a pipe of Windows", "npipe:////./pipe/containerd", "", "", missing, nil, "", "only unix sockets"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := func(name string) string { return map[string]string{EndpointVariable: tt.env}[name] }
			got, err := findEndpoint(tt.flag, env, tt.typed, tt.config, tt.sockets)
			if got != tt.want {
				t.Errorf("findEndpoint = %q, %v, want %q", got, err, tt.want)
			}
			var input *ipam.InputError
			if tt.naming != "" && (!errors.As(err, &input) || !strings.Contains(err.Error(), tt.naming) || input.Hint == "") {
				t.Errorf("findEndpoint = %v, want an InputError that names %s", err, tt.naming)
			}
		})
	}
}

func TestConfigurationThatCannotBeReadIsAnError(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"no YAML": put(t, "crictl.yaml", "a: b: c"), "a list": put(t, "crictl.yaml", "[]"), "a number": put(t, "crictl.yaml", "runtime-endpoint: {}"),
		"a folder": t.TempDir(), "a pipe": pipe, "too large": put(t, "crictl.yaml", "#"+strings.Repeat(" ", maxConfig)),
		"another protocol": put(t, "crictl.yaml", "runtime-endpoint: tcp://1.2.3.4"),
	} {
		t.Run(name, func(t *testing.T) {
			// Even the default one: it may name another runtime than the sockets do.
			_, err := findEndpoint("", func(string) string { return "" }, "", path, []string{path})
			var input *ipam.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), path) {
				t.Errorf("findEndpoint = %v, want an InputError that names %s", err, path)
			}
		})
	}
}
