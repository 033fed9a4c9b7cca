package metrics_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/ip-reaper/ip-reaper/reaper/metrics"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// written writes a file, and returns its metrics.
func written(t *testing.T, path string, r report.Report, exitCode int) map[string]*dto.MetricFamily {
	t.Helper()
	if err := metrics.WriteFile(path, r, exitCode); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(file)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// nodesOf returns how many metrics of the families have each value of the label node.
func nodesOf(families map[string]*dto.MetricFamily) map[string]int {
	nodes := make(map[string]int)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			node := ""
			for _, l := range metric.GetLabel() {
				if l.GetName() == "node" {
					node = l.GetValue()
				}
			}
			nodes[node]++
		}
	}
	return nodes
}

// A file has what a push has; on a node, with its name, and without findings, for which no node looks.
func TestFileHasTheMetricsOfAPush(t *testing.T) {
	for _, node := range []string{"", "node-a"} {
		r := everything()
		r.Run.Node = node
		pushed := push(t, "", r, 0).families
		families := written(t, filepath.Join(t.TempDir(), "a.prom"), r, 0)
		count := 0
		for _, family := range pushed {
			count += len(family.GetMetric())
			if families[family.GetName()] == nil {
				t.Errorf("the file does not have %s", family.GetName())
			}
		}
		if found := families["ip_reaper_findings"] != nil; found != (node == "") {
			t.Errorf("node %q has the number of findings: %v", node, found)
		}
		want := map[string]int{node: count}
		if node == "" { // the leaks by node
			want = map[string]int{"": count - 3, "node-a": 1, "node-b": 1, "(unknown)": 1}
		}
		if diff := cmp.Diff(want, nodesOf(families)); diff != "" {
			t.Errorf("metrics of node %q (-want +got):\n%s", node, diff)
		}
	}
}

func TestFailedRunKeepsTheTimeOfTheLastSuccess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.prom")
	const name = "ip_reaper_last_success_timestamp_seconds"
	success := func(r report.Report, exitCode int) float64 {
		t.Helper()
		family := written(t, path, r, exitCode)[name]
		if family == nil {
			return 0
		}
		return family.GetMetric()[0].GetGauge().GetValue()
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := everything()
	r.Run.Node = "node a \"{"
	r.Run.FinishedAt = at
	if got := success(r, 3); got != 0 {
		t.Errorf("before any success, its time is %v", got)
	}
	want := float64(at.Unix())
	if got := success(r, 0); got != want {
		t.Errorf("after a success, its time is %v, want %v", got, want)
	}
	r.Run.FinishedAt = at.Add(time.Hour)
	for _, code := range []int{1, 4, 130} {
		if got := success(r, code); got != want {
			t.Errorf("after a run with exit code %d, the time of the last success is %v, want %v", code, got, want)
		}
	}
	if err := os.WriteFile(path, []byte(name+" nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := success(r, 1); got != 0 {
		t.Errorf("a file of nonsense has the time %v", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the file: %v, %v, want mode 0644", info.Mode(), err)
	}
}

func TestFilesThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	if err := metrics.CheckFile(filepath.Join(folder, "a.prom")); err != nil {
		t.Error(err)
	}
	for _, path := range []string{folder, filepath.Join(folder, "no", "a.prom"), "/dev/null", "/dev/null/a.prom"} {
		if err := metrics.CheckFile(path); err == nil {
			t.Errorf("%s can be written", path)
		}
	}
}
