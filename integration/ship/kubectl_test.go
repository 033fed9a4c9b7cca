package ship_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// A shell has the reaper's plugins and kubectl on its PATH, and nothing else.
type shell struct {
	*testing.T
	kubectl    string
	path       string
	kubeconfig string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{T: t, kubectl: program(t, "kubectl"), path: t.TempDir()}
	for _, link := range []string{"kubectl-ip_reaper", "kubectl_complete-ip_reaper"} {
		must(t, os.Symlink(program(t, "ip-reaper"), filepath.Join(s.path, link)))
	}
	return s
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := assets.Path(name)
	must(t, err)
	return path
}

// run runs kubectl and returns what it printed, and its exit code.
func (s *shell) run(args ...string) (stdout, stderr string, code int) {
	s.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(s.Context(), s.kubectl, args...)
	cmd.Env = []string{"PATH=" + s.path, "HOME=" + s.TempDir(), "KUBECONFIG=" + s.kubeconfig}
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		s.Fatalf("kubectl: %v", err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// says runs kubectl and looks for texts in what it printed.
func (s *shell) says(wantCode int, want []string, args ...string) {
	s.Helper()
	stdout, stderr, code := s.run(args...)
	if code != wantCode {
		s.Errorf("kubectl %q exits with %d, want %d", args, code, wantCode)
	}
	for _, text := range want {
		if !strings.Contains(stdout+stderr, text) {
			s.Errorf("kubectl %q does not say %q", args, text)
		}
	}
	if s.Failed() {
		s.Logf("stdout:\n%s\nstderr:\n%s", stdout, stderr)
	}
}

func TestKubectlRunsTheReaper(t *testing.T) {
	s := newShell(t)
	c := fresh(t)
	s.kubeconfig = c.Kubeconfig
	versions, _, _ := s.run("version")
	t.Logf("%s", versions)
	p, err := plugin.New(t.TempDir(), c.Kubeconfig)
	must(t, err)
	// A run refuses a cluster without a single pod.
	if _, err := c.CreatePod(t.Context(), "default", "bystander"); err != nil {
		t.Fatal(err)
	}
	leaked, err := p.Add(t.Context(), plugin.Network{Range: "10.99.0.0/24"},
		plugin.Pod{Namespace: "default", Name: "gone"}, strings.Repeat("a", 64), "net1")
	must(t, err)

	s.says(0, []string{leaked[0].String(), "default/gone", "dry run"},
		"ip-reaper", "--context", cluster.ContextName)
	s.says(0, []string{cluster.ContextName + "\n", ":4\n"}, "__complete", "ip-reaper", "--context", "")
	s.says(2, []string{"kubectl ip-reaper: outside a cluster, writing requires an explicit --context",
		"hint: --context " + cluster.ContextName}, "ip-reaper", "--dry-run=false")
	s.says(2, []string{`context "elsewhere" does not exist`}, "ip-reaper", "--context", "elsewhere")
}

func TestKubectlKnowsThePlugin(t *testing.T) {
	s := newShell(t)
	s.kubeconfig = filepath.Join(t.TempDir(), "none")
	s.says(0, []string{filepath.Join(s.path, "kubectl-ip_reaper")}, "plugin", "list")
	s.says(0, []string{"  kubectl ip-reaper [flags]\n", "kubectl ip-reaper help exit-codes"}, "ip-reaper", "--help")
	s.says(2, []string{`kubectl ip-reaper: unknown flag: --bogus`, "hint: see kubectl ip-reaper run --help"}, "ip-reaper", "--bogus")
	s.says(0, []string{"ip-reaper\t"}, "__complete", "ip-re")
	s.says(0, []string{"restore\tPut back what a run released\n", "policy\t", ":4\n"}, "__complete", "ip-reaper", "")
	s.says(0, []string{"json\n", "table\n", ":4\n"}, "__complete", "ip-reaper", "-o", "")
	s.says(0, []string{"yaml\nyml\njson\n:8\n"}, "__complete", "ip-reaper", "--policy", "")
}
