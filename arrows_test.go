package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
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
	{"reaper/printable", nil,
		"reaper/printable makes any text safe to print, and knows nothing else of ours"},
	{"policy", []string{"reaper/printable"},
		"policy is what the operator wrote; it knows no run"},
	{"reaper/ipam", []string{"reaper/printable"},
		"reaper/ipam is what stores hold, and the contract of a backend; it knows no pod and no node that exists"},
	{"reaper/census", []string{"reaper/ipam"},
		"reaper/census is who lives; it decides nothing"},
	{"reaper/ledger", []string{"reaper/census", "reaper/ipam"},
		"reaper/ledger is the memory from run to run; it decides nothing"},
	{"reaper/journal", []string{"reaper/ipam", "reaper/printable"},
		"reaper/journal is what a run recorded, and its stored form"},
	{"reaper/judge", []string{"policy", "reaper/census", "reaper/ipam", "reaper/ledger", "reaper/printable"},
		"reaper/judge decides; it knows no report and no run"},
	{"reaper/report", []string{"policy", "reaper/census", "reaper/ipam", "reaper/journal", "reaper/judge", "reaper/ledger", "reaper/printable"},
		"reaper/report is what a run says, as a value; it knows no run"},
	{"reaper", []string{"policy", "reaper/census", "reaper/ipam", "reaper/journal", "reaper/judge", "reaper/ledger", "reaper/printable", "reaper/report"},
		"reaper is the run; it knows no store and no cluster"},
	{"reaper/report/print", []string{"reaper/ipam", "reaper/journal", "reaper/judge", "reaper/printable", "reaper/report"},
		"reaper/report/print has the formats of a report; it knows no run"},
	{"reaper/reapertest", []string{"reaper/census", "reaper/ipam"},
		"reaper/reapertest is what the tests of the domain are about; it decides nothing"},
	{"reaper/ledgertest", nil,
		"reaper/ledgertest is a second reader of the stored ledger, for tests"},
	{"reaper/kube", []string{"reaper/ipam"},
		"reaper/kube asks the API server for a backend; it knows no store, and nothing of a run"},
	{"reaper/kube/state", []string{"reaper", "reaper/census", "reaper/ipam", "reaper/journal", "reaper/kube", "reaper/ledger", "reaper/printable", "reaper/report"},
		"reaper/kube/state is the API server's side of a run; it knows no store"},
	{"reaper/node", []string{"reaper", "reaper/ipam", "reaper/journal", "reaper/ledger"},
		"reaper/node keeps the state of a node in files; it knows no store and no cluster"},
	{"reaper/cri", []string{"reaper/census", "reaper/ipam"},
		"reaper/cri is the container runtime's side of the census; it knows no store and no API server"},
	{"reaper/cri/critest", []string{"reaper/census"},
		"the fake container runtime is for tests"},
	{"reaper/dump", []string{"reaper/ipam", "reaper/kube", "reaper/kube/state"},
		"reaper/dump reads files; it knows no store"},
	{"reaper/metrics", []string{"reaper/ipam", "reaper/judge", "reaper/ledger", "reaper/printable", "reaper/report"},
		"reaper/metrics tells Prometheus what a report says; it knows no store and no cluster"},
	{"reaper/plugin", []string{"policy", "reaper/ipam"},
		"reaper/plugin describes backends; it knows none"},
	{"reaper/cli", []string{"policy", "reaper", "reaper/census", "reaper/cri", "reaper/dump", "reaper/ipam", "reaper/journal", "reaper/judge", "reaper/kube", "reaper/kube/state", "reaper/ledger", "reaper/metrics", "reaper/node", "reaper/plugin", "reaper/printable", "reaper/report", "reaper/report/print"},
		"reaper/cli is the program for any backends; it knows none"},
	{"backends", []string{"reaper/plugin", "backends/*"},
		"backends is the list of backends and nothing else"},
	{"backends/backendtest", []string{"policy", "reaper", "reaper/census", "reaper/ipam", "reaper/journal", "reaper/judge", "reaper/ledger", "reaper/report"},
		"the conformance suite is for any backend, ours or not"},
	{"backends/*/*test", nil,
		"a fake of a store's server knows nothing of ours"},
	{"backends/*", []string{"reaper/ipam", "reaper/kube", "reaper/plugin"},
		"a backend knows what stores hold and its own store, not the policy, no run and no other backend"},
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
	{module + "/reaper/reapertest", "what tests are about is for tests"},
	{module + "/reaper/ledgertest", "a second reader of the ledger is for tests"},
	{module + "/reaper/cri/critest", "the fake container runtime is for tests"},
	{module + "/backends/azurecns/cnstest", "fakes are for tests"},
	{"testing", "the binary links no test code"},
	{"sigs.k8s.io/controller-runtime", "the binary runs once and exits; it has no caches and no controllers"},
	{"k8s.io/client-go/kubernetes/fake", "fakes are for tests"},
	{"github.com/google/go-cmp", "comparing is for tests"},
	{"github.com/google/jsonschema-go", "schemas of reports are made by tests"},
	{"github.com/onsi", "no test framework"},
	{"github.com/rogpeppe/go-internal", "testscript is for tests"},
	{"github.com/santhosh-tekuri/jsonschema", "validating policies by their schema is for tests"},
	{"github.com/stretchr/testify", "no test framework"},
	{"go.uber.org/goleak", "leak checks are for tests"},
	{"pgregory.net/rapid", "properties are for tests"},
	{"github.com/k8snetworkplumbingwg/whereabouts/pkg/storage", "whereabouts' own store rewrites whole pools"},
	{"github.com/k8snetworkplumbingwg/whereabouts/pkg/reconciler", "whereabouts' reconciler deletes on an API error"},
}

// A listed is what go list says about one package.
type listed struct {
	Dir          string
	ImportPath   string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Module       *struct{ Main bool }
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// ours reports whether the package is of the root module.
func (l listed) ours() bool { return l.Module != nil && l.Module.Main }

// The packages import each other as the design says. So what is pure knows nothing that
// talks, and no backend knows another.
func TestArrows(t *testing.T) {
	for _, pkg := range goList(t, "./...") {
		if !pkg.ours() {
			continue
		}
		from, ok := roomOf(pkg.ImportPath)
		if !ok {
			t.Errorf("%s: the design has no such room", pkg.ImportPath)
			continue
		}
		for _, imported := range pkg.Imports {
			if to, ok := roomOf(imported); within(imported, module) && (!ok || !slices.Contains(from.may, to.name)) {
				t.Errorf("%s imports %s: %s", pkg.ImportPath, imported, from.why)
			}
		}
		for _, imported := range slices.Concat(pkg.TestImports, pkg.XTestImports) {
			if within(imported, module+"/integration") {
				t.Errorf("a test of %s imports %s, which is a module of its own", pkg.ImportPath, imported)
			}
		}
	}
}

// pure are the packages whose tests need no run: what they prove, they prove by themselves.
var pure = []string{"policy", "reaper/printable", "reaper/ipam", "reaper/census", "reaper/ledger", "reaper/journal", "reaper/judge", "reaper/report"}

// A pure package has tests of its own, and they know neither the run nor a store. So who changes it
// sees with go test of that package alone what broke. That the tests are enough, no import says.
func TestPurePackagesAreTestedWhereTheyAre(t *testing.T) {
	for _, pkg := range goList(t, "./...") {
		if !pkg.ours() || !slices.Contains(pure, relative(pkg.ImportPath)) {
			continue
		}
		if len(pkg.TestGoFiles)+len(pkg.XTestGoFiles) == 0 {
			t.Errorf("%s has no tests in its folder", pkg.ImportPath)
		}
		for _, imported := range slices.Concat(pkg.TestImports, pkg.XTestImports) {
			if imported == module+"/reaper" || within(imported, module+"/backends") {
				t.Errorf("a test of %s imports %s: then it proves more than the package, and belongs there", pkg.ImportPath, imported)
			}
		}
	}
}

// The program links nothing that is for tests, and the domain no client.
func TestNothingForeignIsLinked(t *testing.T) {
	for pattern, strangers := range map[string][]stranger{".": strangers, "./reaper": clients} { // ./reaper links all pure rooms
		for _, pkg := range goList(t, pattern) {
			for _, s := range strangers {
				if within(pkg.ImportPath, s.prefix) {
					t.Errorf("%s is linked: %s", pkg.ImportPath, s.why)
				}
			}
		}
	}
}

// A warrant is the permission to release. Only the second look of a run makes one.
func TestOnlyTheSecondLookMakesWarrants(t *testing.T) {
	var makers []string
	for _, pkg := range goList(t, "./...") {
		if !pkg.ours() {
			continue
		}
		for _, file := range pkg.GoFiles {
			text, err := os.ReadFile(filepath.Join(pkg.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "ipam.NewWarrant(") {
				makers = append(makers, path.Join(relative(pkg.ImportPath), file))
			}
		}
	}
	if want := []string{"reaper/confirm.go"}; !slices.Equal(makers, want) {
		t.Errorf("warrants are made in %q, want %q", makers, want)
	}
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

// goList returns the packages that match and all that they depend on.
func goList(t *testing.T, pattern string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"-json=Dir,ImportPath,GoFiles,TestGoFiles,XTestGoFiles,Module,Imports,TestImports,XTestImports", pattern)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", pattern, err, stderr.Bytes())
	}
	var pkgs []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) && len(pkgs) > 0 {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, pkg)
	}
}
