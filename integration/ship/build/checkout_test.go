package build_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// committed is when the commit of the checkouts was made.
const committed = "2026-03-01T12:00:00Z"

// A checkout is a folder under git with all in it committed.
type checkout struct {
	*testing.T
	dir string
}

// copied returns a new checkout with what lies in the repository, and the changelog of the
// version on top.
func copied(t *testing.T) checkout {
	t.Helper()
	root, err := assets.Root()
	must(t, err)
	repository := checkout{t, filepath.Dir(root)}
	c := checkout{t, t.TempDir()}
	for name := range strings.SplitSeq(repository.git("ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		from := filepath.Join(repository.dir, name)
		info, err := os.Stat(from)
		if err != nil || info.IsDir() { // deleted, and not committed
			continue
		}
		text, err := os.ReadFile(from)
		must(t, err)
		to := filepath.Join(c.dir, name)
		must(t, os.MkdirAll(filepath.Dir(to), 0o755))
		must(t, os.WriteFile(to, text, info.Mode()))
	}
	c.git("init", "--quiet")
	c.git("add", "--all", "--force")
	c.commit()
	if out, err := c.run("make", "changelog", "VERSION="+version); err != nil {
		t.Fatalf("make changelog: %v\n%s", err, out)
	}
	c.git("add", "--all")
	c.commit()
	return c
}

// commit commits what was added.
func (c checkout) commit() {
	c.Helper()
	c.git("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--allow-empty", "--message=all")
}

// cloned returns a checkout of the same commit in another folder.
func (c checkout) cloned() checkout {
	c.Helper()
	d := checkout{c.T, filepath.Join(c.TempDir(), "elsewhere")}
	c.git("clone", "--quiet", c.dir, d.dir)
	return d
}

// git runs git and returns what it printed.
func (c checkout) git(args ...string) string {
	c.Helper()
	out, err := c.run("git", args...)
	if err != nil {
		c.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

// run runs a program in the checkout and returns what it printed.
func (c checkout) run(name string, args ...string) (string, error) {
	return c.runWith(nil, name, args...)
}

// runWith is run with more in the environment.
func (c checkout) runWith(env []string, name string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(c.Context(), name, args...)
	cmd.Dir = c.dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "MAKE") || strings.HasPrefix(kv, "MFLAGS") || strings.HasPrefix(kv, "GIT_") || strings.HasPrefix(kv, "MINISIGN_")
	})
	cmd.Env = append(cmd.Env, "GIT_AUTHOR_DATE="+committed, "GIT_COMMITTER_DATE="+committed)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// release makes a release for the machine of the image, and returns its files.
func (c checkout) release(env ...string) map[string]string {
	c.Helper()
	out, err := c.runWith(env, "make", "release", "VERSION="+version, "PLATFORMS=linux/amd64")
	if err != nil {
		c.Fatalf("make release: %v\n%s", err, out)
	}
	dist := filepath.Join(c.dir, "dist")
	entries, err := os.ReadDir(dist)
	if err != nil {
		c.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dist, entry.Name()))
		if err != nil {
			c.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return files
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
