package build_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A release has the same bytes in whichever folder, for whichever user, and in whichever
// environment it is made. What is wrong for Go in the second one would change them, or make
// the build fail.
func TestEveryReleaseIsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes a second release: make exhaustive runs it")
	}
	first := copied(t)
	files := first.release()
	second := first.cloned()
	second.elsewhere()
	again := second.release(hostile(t)...)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(again))); diff != "" {
		t.Fatalf("files (-first +second):\n%s", diff)
	}
	for name, text := range files {
		if text != again[name] {
			t.Errorf("%s is another in another place", name)
		}
	}
}

// elsewhere makes all files of the checkout as a user with another umask has them.
func (c checkout) elsewhere() {
	c.Helper()
	if out, err := c.run("sh", "-c", "umask 077; git ls-files -z | xargs -0 rm; git checkout -- ."); err != nil {
		c.Fatalf("check out again: %v\n%s", err, out)
	}
}

// hostile returns an environment, with a home, in which every build of Go is another one
// or none. What was downloaded and compiled before serves in it too.
func hostile(t *testing.T) []string {
	t.Helper()
	home := written(t, map[string]string{
		".config/go/env": "GOFLAGS=-gcflags=all=-N\nGOOS=plan9\nGOAMD64=v2\nGOTOOLCHAIN=go1.99.9\n",
		".gitconfig":     "[core]\n\tautocrlf = true\n[tar]\n\tumask = 0077\n[log]\n\tshowSignature = true\n",
	}).dir
	env := []string{
		"HOME=" + home, "TMPDIR=" + t.TempDir(), "TZ=Pacific/Kiritimati", "LC_ALL=tr_TR.UTF-8", "LANG=tr_TR.UTF-8",
		"GOFLAGS=-tags=hostile -trimpath=false", "GOAMD64=v3", "GOARM64=v9.0", "GOEXPERIMENT=arenas",
		"GOOS=plan9", "GOARCH=386", "GO386=softfloat", "GOWORK=/nonexistent/go.work", "GOTOOLCHAIN=go1.99.9",
		"GOFIPS140=latest", "CGO_ENABLED=1", "CC=/nonexistent/cc", "CGO_CFLAGS=-O0", "GODEBUG=netdns=cgo",
		"SOURCE_DATE_EPOCH=1", "COMMIT=none", "TAR_OPTIONS=--mtime=@1", "GZIP=-1",
	}
	kept, err := exec.Command("go", "env", "GOPROXY", "GOSUMDB", "GOCACHE", "GOMODCACHE").Output()
	must(t, err)
	for i, value := range strings.Fields(string(kept)) {
		env = append(env, []string{"GOPROXY", "GOSUMDB", "GOCACHE", "GOMODCACHE"}[i]+"="+value)
	}
	return env
}
