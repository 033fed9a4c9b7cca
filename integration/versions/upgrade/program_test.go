package upgrade_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A program is the binary of a version.
type program struct{ name, path string }

// reaper returns the binary, which runs in a folder; "" is that of the test.
func (p program) reaper(dir string) *reap.Reaper { return &reap.Reaper{Path: p.path, Dir: dir} }

// current returns the binary of the sources around this test.
func current(t testing.TB) program {
	t.Helper()
	r, err := reap.New()
	if err != nil {
		t.Fatal(err)
	}
	return program{"this version", r.Path}
}

// earlier builds the binary of a revision. It skips the test if this clone does not have the
// revision.
func earlier(t testing.TB, revision string) program {
	t.Helper()
	sources := exported(t, revision)
	p := program{revision, filepath.Join(t.TempDir(), "ip-reaper")}
	build(t, sources, revision, p.path, ".")
	return p
}

// exported returns a folder with the sources of a revision.
func exported(t testing.TB, revision string) string {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	top, dir := filepath.Dir(root), t.TempDir()
	text, err := command(t.Context(), top, "git", "archive", commitOf(t, top, revision)).Output()
	if err == nil {
		err = unpack(text, dir)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("export %s: %w", revision, err))
	}
	return dir
}

// commitOf returns the commit of a revision.
func commitOf(t testing.TB, top, revision string) string {
	t.Helper()
	commit, err := command(t.Context(), top, "git", "rev-parse", "--verify", "--quiet", revision+"^{commit}").Output()
	if err != nil {
		t.Skipf("SKIPPED: git does not have %s here, so that version cannot be built: fetch the whole history (git fetch --unshallow --tags): %v", revision, err)
	}
	return strings.TrimSpace(string(commit))
}

// build builds a package with the settings of the Makefile, so that the compiled packages
// that two versions have in common are in Go's cache.
func build(t testing.TB, sources, version, binary, pkg string) {
	t.Helper()
	cmd := command(t.Context(), sources, "go", "build", "-tags", "grpcnotrace", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X github.com/ip-reaper/ip-reaper/reaper/cli.version="+version, "-o", binary, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s of %s: %v\n%s", pkg, version, err, out)
	}
}

func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	return cmd
}

// unpack writes the folders and files of a tar archive that git made.
func unpack(text []byte, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	all := tar.NewReader(bytes.NewReader(text))
	for {
		head, err := all.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch head.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(strings.TrimSuffix(head.Name, "/"), 0o700)
		case tar.TypeReg:
			var content []byte
			if content, err = io.ReadAll(all); err == nil {
				err = root.WriteFile(head.Name, content, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
}
