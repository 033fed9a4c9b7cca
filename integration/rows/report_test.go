package rows_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// header is how every policy here begins, atOnce how most go on.
const (
	header = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\n"
	atOnce = "gracePeriod: 0s\nminAge: 0s\n"
)

// A result is what a run of the reaper said.
type result struct {
	exit   int
	lines  []string // as in scenario.want, sorted
	stderr string
	report reap.Report
}

// reap runs the binary with a policy that releases at once, and what is added
// to it.
func (s *scene) reap(addition string) result {
	s.Helper()
	return s.run("run", "--policy", s.policyFile(header+atOnce+addition))
}

// run runs the binary and reads its report.
func (s *scene) run(args ...string) result {
	s.Helper()
	got, err := s.start(args...).Wait()
	s.must(err)
	return s.read(got)
}

// start starts the binary.
func (s *scene) start(args ...string) *reap.Process {
	s.Helper()
	binary, err := reap.New()
	s.must(err)
	process, err := binary.Start(s.Context(), append(args, "--kubeconfig", s.kubeconfig,
		"--context", cluster.ContextName, "-o", "json", "--all")...)
	s.must(err)
	return process
}

// read reads what a run said.
func (s *scene) read(got reap.Result) result {
	s.Helper()
	if got.Report == nil {
		s.Fatalf("exit code %d and no report:\n%s", got.ExitCode, got.Stderr)
	}
	return result{got.ExitCode, s.lines([]byte(got.Stdout)), got.Stderr, *got.Report}
}

// policyFile writes a policy.
func (s *scene) policyFile(text string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "policy.yaml")
	s.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// lines reads the entries of a report. What is empty is a hyphen.
func (s *scene) lines(report []byte) []string {
	s.Helper()
	var r struct {
		Entries []struct {
			reap.Entry
			Key string `json:"key"`
		} `json:"entries"`
	}
	if err := json.Unmarshal(report, &r); err != nil {
		s.Fatalf("%v in %q", err, report)
	}
	lines := make([]string, 0, len(r.Entries))
	for _, e := range r.Entries {
		object := strings.TrimPrefix(e.Pool, cluster.PoolNamespace+"/")
		if e.Backend == "whereabouts" {
			object += "/" + e.Key
		}
		pod := strings.TrimPrefix(e.Owner.Namespace+"/"+e.Owner.Pod, shop+"/")
		fields := []string{object, e.IP, pod, e.Decision, e.Reason, e.Outcome}
		for i, field := range fields {
			if field == "" || field == "/" {
				fields[i] = "-"
			}
		}
		lines = append(lines, strings.Join(fields, " "))
	}
	slices.Sort(lines)
	return lines
}

// count returns how many lines end with the outcome.
func count(lines []string, outcome string) int {
	n := 0
	for _, line := range lines {
		if strings.HasSuffix(line, " "+outcome) {
			n++
		}
	}
	return n
}
