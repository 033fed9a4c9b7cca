package build_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	version = "v7.8.9"
	program = "github.com/ip-reaper/ip-reaper"
	binary  = "ip-reaper_" + version + "_linux_amd64"
)

// A release of the commit is whole: its files name each other by their sums, and all of them
// are of one version and one commit.
func TestRelease(t *testing.T) {
	c := copied(t)
	t.Run("wants a version", func(t *testing.T) { wantsAVersion(t, c) })
	t.Run("has the program and what belongs to it", func(t *testing.T) { isWhole(t, c) })
	t.Run("has a chart that helm pulls", func(t *testing.T) { helmPulls(t, c) })
	t.Run("is published once", func(t *testing.T) { isPublishedOnce(t, c) })
	t.Run("is built from sources alone", func(t *testing.T) { buildsOffline(t, c) })
}

func wantsAVersion(t *testing.T, c checkout) {
	const none, other = "is no version: give one such as VERSION=v1.2.3", "run make changelog VERSION=v7.8"
	forgotten := c.cloned() // by the examples alone
	forgotten.git("checkout", "HEAD~1", "--", "deploy/examples")
	forgotten.commit()
	for _, tt := range []struct {
		checkout
		version, want string
	}{{c, "1.2.3", none}, {c, "v1.2.3-rc.1", none}, {c, "v7.8.10", other}, {forgotten, version, other}} {
		out, err := tt.run("make", "release", "VERSION="+tt.version, "PLATFORMS=linux/amd64")
		if err == nil || !strings.Contains(out, tt.want) {
			t.Errorf("make release VERSION=%q: %v, want %q in\n%s", tt.version, err, tt.want, out)
		}
		if _, err := os.Stat(filepath.Join(tt.dir, "dist")); err == nil {
			t.Errorf("make release VERSION=%q wrote dist/", tt.version)
		}
	}
}

func isWhole(t *testing.T, c checkout) {
	files := c.release()
	commit := strings.TrimSpace(c.git("rev-parse", "HEAD"))
	checkProvenance(t, files, commit)
	sums := ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != "checksums.txt" && name != provenance {
			sums += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(files[name])), name)
		}
	}
	if diff := cmp.Diff(sums, files["checksums.txt"]); diff != "" {
		t.Errorf("checksums (-want +got):\n%s", diff)
	}

	got := unpack(t, files[binary+".tar.gz"])
	for _, page := range []string{"man/ip-reaper.1", "man/ip-reaper-run.1", "man/ip-reaper-policy-validate.1"} {
		if !strings.Contains(got[page], `"ip-reaper `+version+`"`) {
			t.Errorf("%s is not of %s:\n%s", page, version, got[page])
		}
	}
	program := filepath.Join(t.TempDir(), "ip-reaper")
	must(t, os.WriteFile(program, []byte(got["ip-reaper"]), 0o755))
	hasPackages(t, c, program, files["ip-reaper.rb"], got)
	maps.DeleteFunc(got, func(name, _ string) bool {
		return strings.HasPrefix(name, "man/") || strings.HasPrefix(name, "completions/")
	})
	if diff := cmp.Diff([]string{"CHANGELOG.md", "LICENSE", "README.md", "THIRD_PARTY_NOTICES", "ip-reaper"}, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("archive (-want +got):\n%s", diff)
	}
	if want := "\n## " + version + " - 20"; !strings.Contains(got["CHANGELOG.md"], want) {
		t.Errorf("the changelog does not have %q:\n%s", want, got["CHANGELOG.md"])
	}
	want := "ip-reaper " + version + " (commit " + commit + ")\n"
	if out, err := c.run(program, "version"); err != nil || out != want {
		t.Errorf("the program says %q, %v, want %q", out, err, want)
	}
	linked := checkSBOM(t, files[binary+".cdx.json"])
	checkNotices(t, got["THIRD_PARTY_NOTICES"], linked)
	digest := checkImage(t, c, got["ip-reaper"], got["THIRD_PARTY_NOTICES"], commit)
	checkManifests(t, files, digest)
}

// buildsOffline builds what a distribution packages, as docs/release.md says: without git,
// and with the modules that are there.
func buildsOffline(t *testing.T, c checkout) {
	sources := checkout{t, t.TempDir()}
	if out, err := c.run("sh", "-c", "git archive HEAD | tar -x -C "+sources.dir); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := sources.runWith([]string{"GOPROXY=off", "GOFLAGS=-mod=mod"}, "make", "build", "man", "VERSION=v1.2.3", "COMMIT=0123abc", "MAN_DIR="+filepath.Join(sources.dir, "man"))
	if err != nil {
		t.Fatalf("make build man: %v\n%s", err, out)
	}
	if out, err := sources.run("bin/ip-reaper", "version"); err != nil || out != "ip-reaper v1.2.3 (commit 0123abc)\n" {
		t.Errorf("the program says %q, %v", out, err)
	}
	if page := read(t, sources.dir, "man", "ip-reaper.1"); !strings.Contains(page, `"ip-reaper v1.2.3"`) {
		t.Errorf("the man page is not of v1.2.3:\n%s", page)
	}
}

// unpack returns the files of an archive, and checks that they belong to user 0 and that
// they are as old as the commit.
func unpack(t *testing.T, archive string) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(strings.NewReader(archive))
	must(t, err)
	files := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		if h.Uid != 0 || h.Uname != "" || h.ModTime.UTC().Format("2006-01-02T15:04:05Z") != committed {
			t.Errorf("%s is of user %d %q and of %v, want 0, no name, and %s", h.Name, h.Uid, h.Uname, h.ModTime.UTC(), committed)
		}
		text, err := io.ReadAll(r)
		must(t, err)
		files[h.Name] = string(text)
	}
}
