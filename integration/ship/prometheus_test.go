package ship_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// Where the files are that go by what is pushed, and one that has every figure.
const (
	rulesDir  = "../../deploy/prometheus"
	alerts    = rulesDir + "/alerts.yaml"
	dashboard = "../../deploy/grafana/ip-reaper.json"
	document  = "../../docs/metrics.md"
	pushed    = "../../reaper/metrics/testdata/everything.txt"
)

// promtool runs it in a folder.
func promtool(t *testing.T, dir, stdin string, args ...string) {
	t.Helper()
	program, err := assets.Path("promtool")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool(t, rulesDir, "", "check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml")
	promtool(t, rulesDir, "", "test", "rules", "alerts_test.yaml")
}

// What the document would have Prometheus do is what Prometheus takes.
func TestConfigurationOfTheDocumentIsValid(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(scrape_configs:.*?)```").FindStringSubmatch(read(t, document))
	if block == nil {
		t.Fatalf("%s has no scrape_configs", document)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"prometheus.yaml": block[1], "alerts.yaml": read(t, alerts)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, dir, "", "check", "config", "prometheus.yaml")
}

// read returns a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The names and help texts follow Prometheus' own rules.
func TestFiguresAreNamedAsPrometheusWants(t *testing.T) {
	var exposition strings.Builder
	for line := range strings.Lines(read(t, pushed)) {
		if !strings.HasPrefix(line, "PUT ") && !strings.HasPrefix(line, "POST ") {
			exposition.WriteString(line)
		}
	}
	promtool(t, rulesDir, exposition.String(), "check", "metrics")
}

// names are the figures that a text mentions, each once.
func names(text string) []string {
	all := regexp.MustCompile(`\bip_reaper_\w+`).FindAllString(text, -1)
	slices.Sort(all)
	return slices.Compact(all)
}

// Every alert and every panel goes by figures that there are, and every figure has its
// place on the dashboard.
func TestAlertsAndDashboardKnowTheFigures(t *testing.T) {
	there := names(read(t, pushed))
	for _, file := range []string{alerts, rulesDir + "/alerts_test.yaml", dashboard, document} {
		for _, name := range names(read(t, file)) {
			if !slices.Contains(there, name) {
				t.Errorf("%s has %s, which no run pushes", file, name)
			}
		}
	}
	shown := names(read(t, dashboard))
	for _, name := range there {
		if !slices.Contains(shown, name) {
			t.Errorf("the dashboard does not have %s", name)
		}
	}
}

// A rule file has the alerts by which operators know it.
type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Annotations struct{ Summary, Description string }
		}
	}
}

// Every alert is in the document and has a test in which it fires, and says by which
// command to go on.
func TestAlertsAreDocumentedAndTested(t *testing.T) {
	var rules ruleFile
	if err := yaml.Unmarshal([]byte(read(t, alerts)), &rules); err != nil {
		t.Fatal(err)
	}
	told, tested := read(t, document), read(t, rulesDir+"/alerts_test.yaml")
	var all []string
	for _, rule := range rules.Groups[0].Rules {
		all = append(all, rule.Alert)
		if !strings.Contains(told, "| `"+rule.Alert+"` |") {
			t.Errorf("%s does not have %s", document, rule.Alert)
		}
		if !strings.Contains(tested, `alertname="`+rule.Alert+`"`) {
			t.Errorf("no test has %s fire", rule.Alert)
		}
		if rule.Annotations.Summary == "" || !regexp.MustCompile(`"(kubectl|ip-reaper) `).MatchString(rule.Annotations.Description) {
			t.Errorf("%s names no command to go on with: %q", rule.Alert, rule.Annotations.Description)
		}
	}
	for _, name := range regexp.MustCompile("IPReaper[A-Za-z]+").FindAllString(told+tested, -1) {
		if !slices.Contains(all, name) {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// A dashboard is JSON whose every query goes to the data source that is chosen.
func TestDashboardAsksTheChosenSource(t *testing.T) {
	type source struct{ Type, UID string }
	var d struct {
		SchemaVersion int
		Templating    struct{ List []struct{ Name, Type string } }
		Panels        []struct {
			ID         int
			Title      string
			Datasource source
			Targets    []struct {
				Datasource source
				Expr       string
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, dashboard)), &d); err != nil {
		t.Fatal(err)
	}
	if d.SchemaVersion < 39 || len(d.Templating.List) == 0 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("schema %d with the variables %+v, want a data source first", d.SchemaVersion, d.Templating.List)
	}
	chosen := source{"prometheus", "${datasource}"}
	for i, p := range d.Panels {
		if p.ID != i+1 || p.Datasource != chosen || len(p.Targets) == 0 {
			t.Errorf("panel %d %q asks %v, with %d queries", p.ID, p.Title, p.Datasource, len(p.Targets))
		}
		for _, target := range p.Targets {
			if target.Datasource != chosen {
				t.Errorf("a query of panel %q asks %v", p.Title, target.Datasource)
			}
			promtool(t, rulesDir, "", "promql", "format", "--experimental", substituted(target.Expr))
		}
	}
}

// substituted is a query with Grafana's variables filled in.
func substituted(query string) string {
	return strings.NewReplacer("$job", "ip-reaper", "$cluster", ".*").Replace(query)
}
