package run_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// newStranger returns an administrator's fixture on a cluster of its own, where neither ip-reaper nor
// Calico is installed.
func newStranger(t *testing.T) *fixture {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, Cluster: c, network: lan, kubeconfig: c.Kubeconfig}
	t.Cleanup(func() { f.must(c.Stop()) })
	f.must(f.CreateNamespace(t.Context(), shop))
	f.plugin, err = plugin.New(t.TempDir(), f.Kubeconfig)
	f.must(err)
	return f
}

// typed runs a command as a person does, and returns what it prints on stdout.
func (f *fixture) typed(line string) string {
	f.Helper()
	r, err := reap.New()
	f.must(err)
	cmd := exec.CommandContext(f.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig, "HOME="+f.TempDir(), "PATH="+filepath.Dir(r.Path)+":"+os.Getenv("PATH"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		f.Errorf("%s: %v\n%s%s", line, err, out, stderr.String())
	}
	return string(out)
}

// Whoever looks at a cluster for the first time reads in one line what is missing, and each command that
// is printed works. A pod that a finalizer keeps is Terminating for good, and explained as such.
func TestFirstContact(t *testing.T) {
	f := newStranger(t)
	f.must(f.CreateNode(t.Context(), "n1", true))
	f.live("web", cluster.OnNode("n1"))
	address := f.leak("gone")
	out := f.typed("ip-reaper --grace-period=0s --min-age=0s")
	const missing = "warning: the state namespace \"ip-reaper\" does not exist, so nothing can be released: see docs/install.md\n"
	if !strings.HasPrefix(out, missing+"1 leaked address: 1 due now") || strings.Count(out, "warning:") != 1 {
		t.Errorf("want one warning:\n%s", out)
	}
	f.wantText(out, "\ndry run: 1 address due (1 of 2 allocations), and nothing can be released yet\n")

	commands := regexp.MustCompile(`(?m)^ +\$ (.*)$`)
	for _, state := range []string{"nothing is installed", "the namespace exists"} {
		found := commands.FindAllStringSubmatch(f.typed("ip-reaper explain "+address), -1)
		if len(found) == 0 {
			t.Errorf("%s: no command", state)
		}
		for _, command := range found {
			f.typed(strings.Replace(command[1], "--grace-period=60s", "--grace-period=1s", 1))
		}
	}

	f.typed(`kubectl patch pod -n shop web -p '{"metadata":{"finalizers":["example.com/keep"]}}'`)
	f.must(f.Kube.CoreV1().Pods(shop).Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}))
	want := regexp.MustCompile(`(?m)^pod shop/web: Terminating since \S+, past its grace period of 1s: it ends once its finalizers \(example.com/keep\) are removed and the kubelet of its node n1 has stopped it; 1 allocation`)
	cluster.AwaitT(t, "the end of its grace period", func() bool { return want.MatchString(f.typed("ip-reaper explain shop/web")) })
}
