//go:build unix

package calico

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A token of the pod's service account becomes no credential of etcd by any of
// its names. The names are those of a directory that stands for /: "var/run"
// is a link to "run" there, as in most images.
func TestFilesOfTheServiceAccountAreRefused(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return root + "/" + name }
	for _, dir := range []string{"run/secrets/kubernetes.io/serviceaccount/..data", "run/secrets/kubernetes.io-not", "var", "etc", "elsewhere"} {
		if err := os.MkdirAll(in(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"var/run": "../run",
		"run/secrets/kubernetes.io/serviceaccount/token": "..data/token",
		"etc/token":     in("var/run/secrets/kubernetes.io/serviceaccount/token"),
		"etc/chain":     "token",
		"etc/account":   "../run/secrets/kubernetes.io/serviceaccount",
		"elsewhere/run": in("run/secrets"),
	} {
		if err := os.Symlink(to, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"run/secrets/kubernetes.io/serviceaccount/..data/token", "run/secrets/kubernetes.io-not/key", "etc/key"} {
		if err := os.WriteFile(in(name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(in("etc"))
	forbidden := []string{in("var/run/secrets/kubernetes.io"), in("run/secrets/kubernetes.io")}
	for _, name := range []string{
		in("var/run/secrets/kubernetes.io/serviceaccount/token"), in("run/secrets/kubernetes.io/serviceaccount/token"),
		in("var/run/../run//secrets/./kubernetes.io/serviceaccount/token"), in("etc/../run/secrets/kubernetes.io/serviceaccount/token"),
		in("etc/token"), in("etc/chain"), in("etc/account/token"), in("etc/account/../serviceaccount/token"),
		in("elsewhere/run/kubernetes.io/serviceaccount/token"), "token", "./chain", "../run/secrets/kubernetes.io/serviceaccount/token",
		"/proc/self/root" + in("run/secrets/kubernetes.io/serviceaccount/token"), "/proc/self/cwd/token",
		// These need not exist: the name alone is refused.
		in("var/run/secrets/kubernetes.io"), in("run/secrets/kubernetes.io/none"),
	} {
		if strings.HasPrefix(name, "/proc/") && !exists("/proc/self/root") {
			continue
		}
		contents, err := readFiles(forbidden, namedFile{}, namedFile{envKeyFile, name})
		wantError(t, err, "ETCD_KEY_FILE: "+name+" is of the pod's service account: name another file")
		if contents != nil {
			t.Errorf("%s was read", name)
		}
	}
	// The directory may itself be reached by a link.
	if _, err := readFiles(forbidden[:1], namedFile{envKeyFile, in("run/secrets/kubernetes.io/serviceaccount/token")}); err == nil {
		t.Error("behind a link to its directory, the token was read")
	}
	for _, name := range []string{in("etc/key"), "key", in("run/secrets/kubernetes.io-not/key")} {
		contents, err := readFiles(forbidden, namedFile{}, namedFile{envKeyFile, name})
		if err != nil || contents[0] != nil || string(contents[1]) != secret {
			t.Errorf("%s: %q, %v, want the file", name, contents, err)
		}
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// A pipe that is opened for reading blocks until a program writes to it.
func TestNoFileIsOpenedBeforeAllAreChecked(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, last := range []string{serviceAccountDirs[0] + "/serviceaccount/token", filepath.Join(t.TempDir(), "none")} {
		if _, err := EtcdConfig(environment(envEndpoints, "https://a:1", envCAFile, pipe, envCertFile, pipe, envKeyFile, last)); err == nil {
			t.Errorf("%s is a key", last)
		}
	}
	if _, err := EtcdConfig(environment(envEndpoints, "http://a:1", envCAFile, pipe)); err == nil {
		t.Error("a pipe is an authority of http")
	}
}
