package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ip-reaper/ip-reaper"

// A room is a package of the design, or several by a pattern of path.Match.
type room struct {
	name string
	may  []string // the rooms that it may import
	why  string
}

// rooms is the table of the design. The first room whose name matches is the
// package's.
var rooms = []room{
	{".", []string{"backends", "reaper/cli"},
		"main starts the program with the list of backends, and does nothing else"},
	{"policy", nil,
		"policy is what the operator wrote, and knows nothing else of ours"},
	{"reaper/printable", nil,
		"reaper/printable makes any text safe to print, and knows nothing else of ours"},
	{"reaper", []string{"policy", "reaper/printable"},
		"reaper is the domain; it knows the policy, but no store and no cluster"},
	{"reaper/ledgertest", nil,
		"reaper/ledgertest is a second reader of the stored ledger, for tests"},
	{"reaper/kube", []string{"reaper"},
		"reaper/kube asks the API server for a backend; it knows no store, and nothing of a run"},
	{"reaper/kube/state", []string{"reaper", "reaper/journal", "reaper/kube", "reaper/printable"},
		"reaper/kube/state is the API server's side of a run; it knows no store"},
	{"reaper/journal", []string{"reaper"},
		"reaper/journal is the stored form of a journal"},
	{"reaper/node", []string{"reaper", "reaper/journal"},
		"reaper/node keeps the state of a node in files; it knows no store and no cluster"},
	{"reaper/cri", []string{"reaper"},
		"reaper/cri is the container runtime's side of the domain; it knows no store and no API server"},
	{"reaper/cri/critest", []string{"reaper"},
		"the fake container runtime is for tests"},
	{"reaper/dump", []string{"reaper", "reaper/kube", "reaper/kube/state"},
		"reaper/dump reads files; it knows no store"},
	{"reaper/report", []string{"reaper", "reaper/printable"},
		"reaper/report prints; it knows no store and no cluster"},
	{"reaper/metrics", []string{"policy", "reaper", "reaper/printable"},
		"reaper/metrics tells Prometheus what a report says; it knows no store and no cluster"},
	{"reaper/plugin", []string{"policy", "reaper"},
		"reaper/plugin describes backends; it knows none"},
	{"reaper/cli", []string{"policy", "reaper", "reaper/kube", "reaper/kube/state", "reaper/node", "reaper/cri", "reaper/journal", "reaper/dump", "reaper/report", "reaper/metrics", "reaper/plugin", "reaper/printable"},
		"reaper/cli is the program for any backends; it knows none"},
	{"backends", []string{"reaper/plugin", "backends/*"},
		"backends is the list of backends and nothing else"},
	{"backends/backendtest", []string{"policy", "reaper"},
		"the conformance suite is for any backend, ours or not"},
	{"backends/*/*test", nil,
		"a fake of a store's server knows nothing of ours"},
	{"backends/*", []string{"reaper", "reaper/kube", "reaper/plugin"},
		"a backend knows the domain and its own store, not the policy and no other backend"},
	{"deploy", nil,
		"deploy holds manifests and their tests"},
}

// A stranger is a package, with those below it, that should not be linked.
type stranger struct{ prefix, why string }

// clients are packages that the domain does without, so that it can be used and
// tested without a cluster.
var clients = []stranger{
	{"k8s.io/client-go", "reaper is the domain; reaper/kube is its Kubernetes side"},
	{"net/http", "reaper is the domain; it sends no requests"},
}

// strangers are packages that no program of ours links.
var strangers = []stranger{
	{module + "/integration", "integration tests the binary from outside"},
	{module + "/backends/backendtest", "the conformance suite is for tests"},
	{module + "/reaper/ledgertest", "a second reader of the ledger is for tests"},
	{module + "/reaper/cri/critest", "the fake container runtime is for tests"},
	{module + "/backends/azurecns/cnstest", "fakes are for tests"},
	{"testing", "the binary links no test code"},
	{"sigs.k8s.io/controller-runtime", "the binary runs once and exits; it has no caches and no controllers"},
	{"k8s.io/client-go/kubernetes/fake", "fakes are for tests"},
	{"github.com/google/go-cmp", "comparing is for tests"},
	{"github.com/onsi", "no test framework"},
	{"github.com/rogpeppe/go-internal", "testscript is for tests"},
	{"github.com/stretchr/testify", "no test framework"},
	{"go.uber.org/goleak", "leak checks are for tests"},
	{"pgregory.net/rapid", "properties are for tests"},
	{"github.com/k8snetworkplumbingwg/whereabouts/pkg/storage", "whereabouts' own store rewrites whole pools"},
	{"github.com/k8snetworkplumbingwg/whereabouts/pkg/reconciler", "whereabouts' reconciler deletes on an API error"},
}

// vague are names that say nothing about what a package holds.
var vague = []string{"pkg", "internal", "util", "utils", "common", "types"}

// A listed is what go list says about one package.
type listed struct {
	Dir          string
	ImportPath   string
	Name         string
	Module       *struct{ Main bool }
	GoFiles      []string
	CgoFiles     []string
	IgnoredFiles []string `json:"IgnoredGoFiles"`
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// ours reports whether the package is of the root module.
func (l listed) ours() bool { return l.Module != nil && l.Module.Main }

func TestArrows(t *testing.T) {
	for _, broken := range brokenArrows(goList(t, "./...")) {
		t.Error(broken)
	}
}

func TestBinaryLinksNoTestCode(t *testing.T) {
	pkgs := goList(t, ".")
	if last := pkgs[len(pkgs)-1]; last.ImportPath != module || last.Name != "main" || len(last.GoFiles) == 0 {
		t.Fatalf("the last listed is package %s of %s with files %v, want our main", last.Name, last.ImportPath, last.GoFiles)
	}
	for _, broken := range linkedStrangers(pkgs, strangers) {
		t.Error(broken)
	}
}

func TestDomainLinksNoClient(t *testing.T) {
	pkgs := goList(t, "./reaper")
	if last := pkgs[len(pkgs)-1]; last.ImportPath != module+"/reaper" || len(last.GoFiles) == 0 {
		t.Fatalf("the last listed is %s with files %v, want the domain", last.ImportPath, last.GoFiles)
	}
	for _, broken := range linkedStrangers(pkgs, clients) {
		t.Error(broken)
	}
}

func TestPackagesHaveNamesThatSaySomething(t *testing.T) {
	for _, broken := range vagueNames(goList(t, "./...")) {
		t.Error(broken)
	}
}

func TestNothingHappensOnImport(t *testing.T) {
	for _, pkg := range goList(t, "./...") {
		if !pkg.ours() {
			continue
		}
		for _, name := range slices.Concat(pkg.GoFiles, pkg.CgoFiles, pkg.IgnoredFiles) {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s: func init: what a program does starts in main", fset.Position(f.Pos()))
				}
			}
		}
	}
}

// TestBrokenRulesAreSeen breaks each rule in a made-up listing.
func TestBrokenRulesAreSeen(t *testing.T) {
	for _, tt := range []struct {
		name string
		from string
		to   string
		want int
	}{
		{"policy imports the domain", "policy", "reaper", 1},
		{"the domain imports the policy", "reaper", "policy", 0},
		{"the domain imports its Kubernetes side", "reaper", "reaper/kube", 1},
		{"the domain imports the list", "reaper", "backends", 1},
		{"the domain imports a backend", "reaper", "backends/whereabouts", 1},
		{"the Kubernetes side imports the domain", "reaper/kube", "reaper", 0},
		{"the Kubernetes side imports a backend", "reaper/kube", "backends/whereabouts", 1},
		{"the node's state imports the domain", "reaper/node", "reaper", 0},
		{"the node's state imports the Kubernetes side", "reaper/node", "reaper/kube", 1},
		{"the runtime's side imports the domain", "reaper/cri", "reaper", 0},
		{"the runtime's side imports its fake", "reaper/cri", "reaper/cri/critest", 1},
		{"the runtime's side imports the Kubernetes side", "reaper/cri", "reaper/kube", 1},
		{"the metrics import the domain", "reaper/metrics", "reaper", 0},
		{"the metrics import the Kubernetes side", "reaper/metrics", "reaper/kube", 1},
		{"the domain imports the metrics", "reaper", "reaper/metrics", 1},
		{"the Kubernetes side imports the metrics", "reaper/kube", "reaper/metrics", 1},
		{"the domain imports a description", "reaper", "reaper/plugin", 1},
		{"a description imports the domain", "reaper/plugin", "reaper", 0},
		{"a description imports a backend", "reaper/plugin", "backends/whereabouts", 1},
		{"the program imports a description", "reaper/cli", "reaper/plugin", 0},
		{"the program imports the list", "reaper/cli", "backends", 1},
		{"the program imports a backend", "reaper/cli", "backends/whereabouts", 1},
		{"the list imports a backend", "backends", "backends/whereabouts", 0},
		{"the list imports the policy", "backends", "policy", 1},
		{"the list imports the suite", "backends", "backends/backendtest", 1},
		{"the list imports the Kubernetes side", "backends", "reaper/kube", 1},
		{"a backend imports the domain", "backends/whereabouts", "reaper", 0},
		{"a backend asks the API server", "backends/whereabouts", "reaper/kube", 0},
		{"a backend imports the state of a run", "backends/whereabouts", "reaper/kube/state", 1},
		{"what a backend asks with imports the state of a run", "reaper/kube", "reaper/kube/state", 1},
		{"a backend imports the policy", "backends/reservedips", "policy", 1},
		{"a backend describes itself", "backends/whereabouts", "reaper/plugin", 0},
		{"a backend imports another", "backends/whereabouts", "backends/overlapping", 1},
		{"a backend imports the suite", "backends/whereabouts", "backends/backendtest", 1},
		{"the suite imports a backend", "backends/backendtest", "backends/whereabouts", 1},
		{"main imports the list", ".", "backends", 0},
		{"main imports a backend", ".", "backends/whereabouts", 1},
		{"main imports the suite", ".", "backends/backendtest", 1},
		{"main imports the integration tests", ".", "integration/kit/reap", 1},
		{"a package has no room", "reaper/helpers", "policy", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := brokenArrows([]listed{invented(tt.from, tt.to)})
			if len(got) != tt.want {
				t.Errorf("brokenArrows = %q, want %d", got, tt.want)
			}
		})
	}

	t.Run("a test imports the integration tests", func(t *testing.T) {
		pkg := invented("reaper")
		pkg.XTestImports = []string{module + "/integration/kit/reap"}
		if got := brokenArrows([]listed{pkg}); len(got) != 1 {
			t.Errorf("brokenArrows = %q, want 1", got)
		}
	})
	t.Run("the binary links a test framework", func(t *testing.T) {
		got := linkedStrangers([]listed{
			{ImportPath: "testing/fstest"},
			{ImportPath: "testingx"},
			{ImportPath: "sigs.k8s.io/controller-runtime/pkg/envtest"},
		}, strangers)
		if len(got) != 2 {
			t.Errorf("linkedStrangers = %q, want 2", got)
		}
	})
	t.Run("the domain links a client", func(t *testing.T) {
		got := linkedStrangers([]listed{
			{ImportPath: "net/http/httptrace"}, {ImportPath: "net/httpx"}, {ImportPath: "k8s.io/client-go/util/jsonpath"},
		}, clients)
		if len(got) != 2 {
			t.Errorf("linkedStrangers = %q, want 2", got)
		}
	})
	t.Run("a package is called types", func(t *testing.T) {
		got := vagueNames([]listed{invented("reaper/types"), invented("internal/deep"), invented("policy")})
		if len(got) != 2 {
			t.Errorf("vagueNames = %q, want 2", got)
		}
	})
}

// brokenArrows names the imports among our packages that the table of rooms
// does not have, and the packages that it does not have.
func brokenArrows(pkgs []listed) []string {
	var broken []string
	for _, pkg := range pkgs {
		if !pkg.ours() {
			continue
		}
		from, ok := roomOf(pkg.ImportPath)
		if !ok {
			broken = append(broken, fmt.Sprintf("%s: the design has no such room", pkg.ImportPath))
			continue
		}
		for _, imported := range pkg.Imports {
			if within(imported, module) && !from.mayImport(imported) {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s", pkg.ImportPath, imported, from.why))
			}
		}
		for _, imported := range slices.Concat(pkg.TestImports, pkg.XTestImports) {
			if within(imported, module+"/integration") {
				broken = append(broken, fmt.Sprintf("a test of %s imports %s, which is a module of its own", pkg.ImportPath, imported))
			}
		}
	}
	return broken
}

// linkedStrangers names the strangers among all packages that are linked.
func linkedStrangers(pkgs []listed, strangers []stranger) []string {
	var broken []string
	for _, pkg := range pkgs {
		for _, s := range strangers {
			if within(pkg.ImportPath, s.prefix) {
				broken = append(broken, fmt.Sprintf("%s is linked: %s", pkg.ImportPath, s.why))
			}
		}
	}
	return broken
}

// vagueNames names our packages with a vague word in their path or as their
// name.
func vagueNames(pkgs []listed) []string {
	var broken []string
	for _, pkg := range pkgs {
		if !pkg.ours() {
			continue
		}
		words := append(strings.Split(relative(pkg.ImportPath), "/"), pkg.Name)
		for _, word := range vague {
			if slices.Contains(words, word) {
				broken = append(broken, fmt.Sprintf("%s: %q does not say what the package holds", pkg.ImportPath, word))
				break
			}
		}
	}
	return broken
}

// mayImport reports whether the room has an arrow to the package. The suite has
// a room of its own and is not one of the backends.
func (r room) mayImport(importPath string) bool {
	to, ok := roomOf(importPath)
	return ok && slices.Contains(r.may, to.name)
}

// roomOf finds a package's room.
func roomOf(importPath string) (room, bool) {
	for _, r := range rooms {
		if ok, err := path.Match(r.name, relative(importPath)); err == nil && ok {
			return r, true
		}
	}
	return room{}, false
}

// relative returns the package's path in our module, "." for the root.
func relative(importPath string) string {
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/"), ".")
}

// within reports whether the import path is the prefix or below it.
func within(importPath, prefix string) bool {
	return importPath == prefix || strings.HasPrefix(importPath, prefix+"/")
}

// invented returns a package of ours that imports others of ours.
func invented(from string, to ...string) listed {
	l := listed{
		ImportPath: path.Join(module, from),
		Name:       path.Base(path.Join(module, from)),
		Module:     &struct{ Main bool }{true},
	}
	for _, t := range to {
		l.Imports = append(l.Imports, path.Join(module, t))
	}
	return l
}

// goList returns the packages that match and all that they depend on.
func goList(t *testing.T, pattern string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"-json=Dir,ImportPath,Name,Module,GoFiles,CgoFiles,IgnoredGoFiles,Imports,TestImports,XTestImports", pattern)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", pattern, err, stderr.Bytes())
	}
	var pkgs []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, pkg)
	}
}
