// Package build_test builds the image and runs it as a cluster does: without rights,
// without a network and without a file that could be written. It makes releases of what
// lies in the repository, committed or not, in checkouts of its own.
package build_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// The images of the tests say this of themselves.
const (
	imageVersion = "v9.9.9"
	imageCommit  = "0123456789abcdef0123456789abcdef01234567"
)

// image is the name of the image that TestMain builds. It is empty where no Docker
// daemon answers.
var image string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if exec.Command("docker", "version").Run() == nil {
		image = fmt.Sprintf("ip-reaper-test-%d:%s", os.Getpid(), imageVersion)
		defer func() { _ = exec.Command("docker", "image", "rm", "--force", image).Run() }()
		if out, err := makeImage("IMAGE=" + image); err != nil {
			fmt.Fprintf(os.Stderr, "make image: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// makeImage makes an image by the Makefile, as it does outside of any make. Its version is the tag.
func makeImage(variables ...string) ([]byte, error) {
	root, err := assets.Root()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("make", append([]string{"image", "COMMIT=" + imageCommit}, variables...)...)
	cmd.Dir = filepath.Dir(root)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "MAKE") || strings.HasPrefix(kv, "MFLAGS")
	})
	return cmd.CombinedOutput()
}

// needImage skips the test where there is none. make test says so too, for go test
// does not.
func needImage(t *testing.T) {
	t.Helper()
	if image == "" {
		t.Skip("NO DOCKER DAEMON ANSWERS: the image is not tested")
	}
}

// docker runs a command of docker, and returns what it printed and its exit code.
func docker(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "docker", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("docker: %v", err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// mustDocker runs a command of docker that has to succeed, and returns what it printed.
func mustDocker(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := docker(t, args...)
	if code != 0 {
		t.Fatalf("docker %q exits with %d:\n%s", args, code, stderr)
	}
	return stdout
}
