package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tests are packages with a test of each outcome. They say what they are run with.
var tests = map[string]string{
	"go.mod": "module example.com/suites\n\ngo 1.26\n",
	"good/good_test.go": `package good

import (
	"os"
	"testing"
)

func TestServer(t *testing.T) { t.Logf("API server v%s.9", os.Getenv("IP_REAPER_KUBERNETES")) }
func TestKubectl(t *testing.T) { t.Logf("\nClient Version: v%s.9\n", os.Getenv("IP_REAPER_KUBECTL")) }
func TestNewer(t *testing.T) { t.Run("part", func(t *testing.T) { t.Skip("needs 1.34") }); t.Skip("needs 1.34") }
`,
	"bad/bad_test.go": `package bad

import "testing"

func TestServer(t *testing.T) { t.Log("API server v1.37.9") }
func TestRelease(t *testing.T) { t.Run("part", func(t *testing.T) { t.Error("a live address is gone") }) }
`,
	"broken/broken_test.go": "package broken\n\nvar _ = undefined\n",
}

func TestSuiteTellsWhatRanOnWhat(t *testing.T) {
	dir := t.TempDir()
	for name, text := range tests {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	for _, test := range []struct {
		name string
		suite
		want result
		says []string
		err  bool
	}{
		{
			name: "all is well", suite: suite{packages: []string{"./good"}},
			says: []string{"needs 1.34", "--- SKIP: TestNewer", "2 passed, 1 skipped, 0 failed"},
			want: result{
				servers: []string{"v1.31.9"}, kubectls: []string{"v1.37.9"}, packages: []string{"example.com/suites/good"},
				passed: 2, skipped: 1,
			},
		},
		{
			name: "a test fails", suite: suite{packages: []string{"./bad"}}, err: true, says: []string{"a live address is gone"},
			want: result{servers: []string{"v1.37.9"}, packages: []string{"example.com/suites/bad"}, passed: 1, failed: 1},
		},
		{
			name: "no test has the name", suite: suite{packages: []string{"./good"}, tests: "Conform"}, err: true,
			want: result{packages: []string{"example.com/suites/good"}}, says: []string{"no test passed"},
		},
		{
			name: "a package does not compile", suite: suite{packages: []string{"./broken"}}, err: true,
			want: result{packages: []string{"example.com/suites/broken"}}, says: []string{"undefined: undefined"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			got := tester{dir: dir, out: &out}.test(t.Context(), test.suite, "1.31", "1.37")
			if (got.err != nil) != test.err {
				t.Errorf("error %v, want one: %v", got.err, test.err)
			}
			got.err = nil
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			for _, text := range test.says {
				if !strings.Contains(out.String(), text) {
					t.Errorf("it does not say %q:\n%s", text, out.String())
				}
			}
		})
	}
}

func TestTableHasOneRowAVersion(t *testing.T) {
	day := time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)
	const ours = "github.com/ip-reaper/ip-reaper/integration/"
	well := row{asked: "1.31", began: day, took: 90 * time.Second}
	well.add(result{servers: []string{"v1.31.0"}, packages: []string{ours + "run", ours + "run/kube"}, passed: 2, skipped: 1})
	well.add(result{servers: []string{"v1.31.0"}, kubectls: []string{"v1.31.0"}, packages: []string{ours + "ship"}, passed: 3})
	failing := row{asked: "1.36", began: day}
	failing.add(result{servers: []string{"v1.36.3"}, packages: []string{ours + "run"}, passed: 1, failed: 1})
	mute := row{asked: "1.37", began: day}
	mute.add(result{packages: []string{ours + "run"}, passed: 1})
	var out strings.Builder
	if err := printTable(&out, []row{well, failing, mute}); err != nil {
		t.Fatal(err)
	}
	want := `| Kubernetes | API server | kubectl | packages | tests | result | took | date |
|---|---|---|---|---|---|---|---|
| 1.31 | v1.31.0 | v1.31.0 | run, run/kube, ship | 5 passed, 1 skipped, 0 failed | ok | 1m30s | 2026-11-23 |
| 1.36 | v1.36.3 |  | run | 1 passed, 0 skipped, 1 failed | **failed** | 0s | 2026-11-23 |
| 1.37 |  |  | run | 1 passed, 0 skipped, 0 failed | **failed** | 0s | 2026-11-23 |
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
