package backends_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pageLines is the most lines that the example in docs/backends.md may have.
const pageLines = 140

// TestThePageOfBackendsIsAProgram builds the code in docs/backends.md, outside our module: a
// backend, which passes the conformance suite, and a program with it and our backends. The
// program is not linked: that would take as long as the rest.
func TestThePageOfBackendsIsAProgram(t *testing.T) {
	t.Parallel()
	m := module{t, t.TempDir()}
	files := pageFiles(t)
	if n := strings.Count(files["claims.go"], "\n"); n > pageLines {
		t.Errorf("the backend has %d lines of Go, want at most %d", n, pageLines)
	}
	m.write("go.mod", goMod(t))
	m.write("go.sum", readFile(t, "../go.sum"))
	m.write("claims/claims.go", files["claims.go"])
	m.write("claims/claims_test.go", files["claims_test.go"])
	m.write("main.go", files["main.go"])

	if said := m.run("gofmt", "-l", "."); said != "" {
		t.Errorf("gofmt would change %s", said)
	}
	if said := m.run("go", "test", "-v", "-count=1", "./claims"); strings.Count(said, "--- PASS: TestConformance/") < 15 {
		t.Errorf("the suite did not run:\n%s", said)
	}
	m.run("go", "vet", ".")
}

// pageFiles are the files on the page: the code blocks that have the same name after the
// language, joined with blank lines.
func pageFiles(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, found := range regexp.MustCompile("(?ms)^```go (\\S+)\n(.*?)^```$").FindAllStringSubmatch(readFile(t, "../docs/backends.md"), -1) {
		name, code := found[1], found[2]
		if files[name] != "" {
			files[name] += "\n"
		}
		files[name] += code
	}
	if len(files) != 3 {
		t.Fatalf("the page has %d files, want 3", len(files))
	}
	return files
}

// goMod is the go.mod of a module that uses ours from this folder, and the same versions of all
// others.
func goMod(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	const ours = "github.com/ip-reaper/ip-reaper"
	own := strings.Replace(readFile(t, "../go.mod"), "module "+ours+"\n", "module example.com/ipam\n", 1)
	return own + "\nrequire " + ours + " v0.0.0\n\nreplace " + ours + " => " + root + "\n"
}

// A module is a folder with Go code, outside our module.
type module struct {
	*testing.T
	dir string
}

func (m module) write(name, content string) {
	m.Helper()
	file := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		m.Fatal(err)
	}
}

// run returns what a command prints. Modules come only from the cache.
func (m module) run(name string, args ...string) string {
	m.Helper()
	cmd := exec.CommandContext(m.Context(), name, args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		m.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out)
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
