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
)

// Where the files are that go by what is pushed, and one that has every figure.
const (
	rulesDir  = "../../deploy/prometheus"
	alerts    = rulesDir + "/alerts.yaml"
	dashboard = "../../deploy/helm/ip-reaper/monitoring/dashboard/ip-reaper.json"
	document  = "../../docs/metrics.md"
	pushed    = "../../reaper/metrics/testdata/everything.txt"
)

// promtool runs it in a folder.
func promtool(t *testing.T, dir, stdin string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// The alerts fire for what they say, and not before: deploy/prometheus/alerts_test.yaml.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool(t, rulesDir, "", "check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml")
	promtool(t, rulesDir, "", "test", "rules", "alerts_test.yaml")
}

// Each alert points to a page that says what to do, and those for pools that are full point to the
// runbook: what is typed then decides whether an address in use is released.
func TestAlertsPointToTheRunbook(t *testing.T) {
	pages := loadChart(t).Metadata.Home + "/blob/main/"
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `json:"alert"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	must(t, yaml.Unmarshal([]byte(read(t, alerts)), &rules))
	found := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			found++
			file, ours := strings.CutPrefix(rule.Annotations["runbook_url"], pages)
			page, anchor, _ := strings.Cut(file, "#")
			if !ours {
				t.Errorf("%s points to %q, want a page in %s", rule.Alert, rule.Annotations["runbook_url"], pages)
				continue
			}
			if text := read(t, filepath.Join(root(t), page)); anchor != "" && !slices.Contains(anchors(text), anchor) {
				t.Errorf("%s points to %s, and no heading there has that anchor", rule.Alert, file)
			}
			if full := strings.Contains(rule.Alert, "Full") || strings.Contains(rule.Alert, "Dry"); full && page != "docs/outage.md" {
				t.Errorf("%s points to %s, want the runbook", rule.Alert, file)
			}
		}
	}
	if found == 0 {
		t.Error("there is no alert")
	}
}

// What the document would have Prometheus do is what Prometheus takes.
func TestConfigurationOfTheDocumentIsValid(t *testing.T) {
	clusters := regexp.MustCompile("(?s)```yaml\n# clusters.yaml[^\n]*\n(.*?)```").FindStringSubmatch(read(t, document))
	if clusters == nil {
		t.Fatalf("%s has no clusters.yaml", document)
	}
	block := regexp.MustCompile("(?s)```yaml\n(scrape_configs:.*?)```").FindStringSubmatch(read(t, document))
	if block == nil {
		t.Fatalf("%s has no scrape_configs", document)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"prometheus.yaml": block[1], "alerts.yaml": read(t, alerts), "clusters.yaml": clusters[1]} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	promtool(t, dir, "", "check", "config", "prometheus.yaml")
	promtool(t, dir, "", "check", "rules", "clusters.yaml")
}

// read returns a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
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
		figures := names(read(t, file))
		if len(figures) == 0 {
			t.Errorf("%s has no figure", file)
		}
		for _, name := range figures {
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

// Prometheus takes each query of the dashboard.
func TestQueriesOfTheDashboardAreValid(t *testing.T) {
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(read(t, dashboard)), &d); err != nil || len(d.Panels) == 0 {
		t.Fatalf("%d panels, %v", len(d.Panels), err)
	}
	variables := strings.NewReplacer("$job", "ip-reaper", "$cluster", ".*") // of Grafana
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			promtool(t, rulesDir, "", "promql", "format", "--experimental", variables.Replace(target.Expr))
		}
	}
}
