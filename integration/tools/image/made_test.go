package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// committed is when the commit of the tests was made: 2026-03-01T12:00:00Z.
const committed = "1772366400"

// A made is what the program wrote.
type made struct {
	folder, archive, digest string
}

// makeImage makes an image of programs, in folders of its own.
func makeImage(t *testing.T, programs ...string) made {
	t.Helper()
	dir := files(t)
	var digest strings.Builder
	if err := run(arguments(dir, programs...), &digest); err != nil {
		t.Fatal(err)
	}
	return made{filepath.Join(dir, "layout"), filepath.Join(dir, "image.tar"), strings.TrimSpace(digest.String())}
}

// index returns the index of the layout, which has to be the one that was printed.
func (m made) index(t *testing.T) v1.ImageIndex {
	t.Helper()
	path, err := layout.FromPath(m.folder)
	if err != nil {
		t.Fatal(err)
	}
	all, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := v1.NewHash(m.digest)
	if err != nil {
		t.Fatal(err)
	}
	index, err := all.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// files returns a new folder with what an image has beside its program.
func files(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "LICENSE", "the licence\n")
	write(t, dir, "THIRD_PARTY_NOTICES", "the notices\n")
	return dir
}

func arguments(dir string, programs ...string) []string {
	return append([]string{
		"-name=registry.example.com/ip-reaper:v1.2.3", "-version=v1.2.3", "-commit=0123abc", "-created=" + committed,
		"-license=" + filepath.Join(dir, "LICENSE"), "-notices=" + filepath.Join(dir, "THIRD_PARTY_NOTICES"),
		"-layout=" + filepath.Join(dir, "layout"), "-archive=" + filepath.Join(dir, "image.tar"),
	}, programs...)
}

// programs are those that were built already, by their platforms.
var programs = map[string]string{}

// program returns a small program for a platform.
func program(t *testing.T, platform string) string {
	t.Helper()
	if path, ok := programs[platform]; ok {
		return path
	}
	goos, goarch, _ := strings.Cut(platform, "/")
	path := filepath.Join(built, goos+"_"+goarch)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./testdata")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	programs[platform] = path
	return path
}

// built is where the programs of the tests are.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "image"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
