package build_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// Where the database of vulnerabilities cannot be reached, nothing is known. The workflows
// fail then, and a run by hand says so.
func TestVulnerabilitiesFail(t *testing.T) {
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	lint := filepath.Join(root, "tools/lint")
	govulncheck := filepath.Join(t.TempDir(), "govulncheck")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", govulncheck, "golang.org/x/vuln/cmd/govulncheck")
	cmd.Dir = lint
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build govulncheck: %v\n%s", err, out)
	}
	const about = `{"schema_version":"1.3.1","id":"GO-2026-0001","modified":"2026-01-01T00:00:00Z",` +
		`"affected":[{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],` +
		`"ecosystem_specific":{"imports":[{"path":"net/url","symbols":["Parse"]}]}}],"database_specific":{"url":"https://example.com"}}`
	const modified = `"modified":"2026-01-01T00:00:00Z"`
	c := written(t, map[string]string{
		"go.mod":                        "module example.com/m\n\ngo 1.26\n",
		"bad/main.go":                   "package main\n\nimport \"net/url\"\n\nfunc main() { _, _ = url.Parse(\"x\") }\n",
		"good/main.go":                  "package main\n\nfunc main() {}\n",
		"database/index/db.json":        "{" + modified + "}",
		"database/index/vulns.json":     `[{"id":"GO-2026-0001",` + modified + "}]",
		"database/index/modules.json":   `[{"path":"stdlib","vulns":[{"id":"GO-2026-0001",` + modified + "}]}]",
		"database/ID/GO-2026-0001.json": about,
	})
	const unreachable, nothing = "HTTPS_PROXY=http://127.0.0.1:1", "*** NOTHING WAS CHECKED"
	database := "-db=file://" + filepath.Join(c.dir, "database")
	for _, tt := range []struct {
		name  string
		env   []string
		args  []string
		want  string
		fails bool
	}{
		{name: "no vulnerability", args: []string{database, "./good"}, want: "No vulnerabilities found."},
		{name: "a vulnerability", args: []string{database, "./bad"}, want: "GO-2026-0001", fails: true},
		{name: "no database, by hand", env: []string{unreachable, "VULNCHECK="}, args: []string{"./good"}, want: nothing},
		{name: "no database, in a workflow", env: []string{unreachable, "VULNCHECK=required"}, args: []string{"./good"}, want: nothing, fails: true},
		{name: "no package", args: []string{database, "./none"}, want: "none", fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := c.runWith(tt.env, filepath.Join(lint, "vulncheck.sh"), append([]string{govulncheck}, tt.args...)...)
			if (err != nil) != tt.fails || !strings.Contains(out, tt.want) {
				t.Errorf("vulncheck: %v, want %q in\n%s", err, tt.want, out)
			}
		})
	}
}
