package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

const (
	// commandTimeout ends a command that hangs, so that the page can be told.
	commandTimeout = time.Minute

	home = "ip-reaper" // the namespace that the manifests install into
)

// A scene is a cluster, and an operator with a shell.
type scene struct {
	*testing.T
	cluster  *cluster.Cluster
	calico   *calico.Datastore
	dir      string // a checkout, as far as the pages need one
	auditLog string
	logs     map[string]string // of the Jobs that ran, by name
}

// newScene starts a cluster with the outage. Who reads another page than the README
// has installed what that says.
func newScene(t *testing.T, p page) *scene {
	t.Helper()
	crds, err := calico.CRDs(t.Context())
	must(t, err)
	attachments, err := cluster.NetworkAttachmentCRD()
	must(t, err)
	dir := t.TempDir()
	audit := filepath.Join(dir, "audit-policy.yaml")
	must(t, os.WriteFile(audit, []byte(auditPolicy(t)), 0o600))
	auditLog := filepath.Join(t.TempDir(), "audit.log")
	c, err := cluster.Start(t.Context(), cluster.Options{
		CRDs:  []string{crds, attachments},
		Flags: map[string]string{"audit-policy-file": audit, "audit-log-path": auditLog},
	})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	d, err := calico.OnKubernetes(t.Context(), c)
	must(t, err)
	s := &scene{T: t, cluster: c, calico: d, dir: dir, auditLog: auditLog, logs: map[string]string{}}
	s.checkout(p.path != "README.md")
	s.outage()
	if p.path != "README.md" {
		out, err := s.bash("kubectl apply -k deploy/kustomize/cronjob")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return s
}

// auditPolicy is the one that docs/design.md advises.
func auditPolicy(t testing.TB) string {
	t.Helper()
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.file() == "audit-policy.yaml" {
				return b.text()
			}
		}
	}
	t.Fatal("no page has an audit-policy.yaml")
	return ""
}

// checkout lays down what the commands name: the manifests, the programs, and a
// kubeconfig with a context of the pages' name.
func (s *scene) checkout(plugin bool) {
	s.Helper()
	must(s, os.CopyFS(s.path("deploy"), os.DirFS(filepath.Join(root(s), "deploy"))))
	for _, dir := range []string{"bin", "programs"} {
		must(s, os.Mkdir(s.path(dir), 0o700))
	}
	reaper := []string{"bin/ip-reaper", "programs/ip-reaper"}
	if plugin {
		reaper = append(reaper, "programs/kubectl-ip_reaper")
	}
	links := map[string][]string{"ip-reaper": reaper, "kubectl": {"programs/kubectl"}, "calicoctl": {"programs/calicoctl"}}
	for name, paths := range links {
		program, err := assets.Path(name)
		must(s, err)
		for _, path := range paths {
			must(s, os.Symlink(program, s.path(path)))
		}
	}
	config, err := clientcmd.LoadFromFile(s.cluster.Kubeconfig)
	must(s, err)
	config.Contexts["my-cluster"] = config.Contexts[cluster.ContextName].DeepCopy()
	config.Contexts["my-cluster"].Namespace = "default"
	config.CurrentContext = "my-cluster"
	must(s, clientcmd.WriteToFile(*config, s.path("kubeconfig")))
}

// path is the path of something in the checkout.
func (s *scene) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// bash runs a command as a shell does into which it is typed, in the checkout, and
// returns what it printed.
func (s *scene) bash(typed string) (string, error) {
	ctx, cancel := context.WithTimeout(s.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", typed)
	cmd.Dir = s.dir
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = []string{
		"HOME=" + s.dir, "KUBECONFIG=" + s.path("kubeconfig"),
		"PATH=" + strings.Join([]string{s.path(".local", "bin"), s.path("programs"), os.Getenv("PATH")}, string(os.PathListSeparator)),
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("no end within %v: %w", commandTimeout, err)
	}
	return string(out), err
}

// lastRun is the ID of the last run that wrote a journal; empty if none did.
func (s *scene) lastRun() string {
	s.Helper()
	list, err := s.cluster.Kube.CoreV1().ConfigMaps(home).List(s.Context(), metav1.ListOptions{LabelSelector: "ip-reaper/journal"})
	must(s, err)
	last := ""
	for _, cm := range list.Items {
		last = max(last, cm.Labels["ip-reaper/run"]) // which begins with the time
	}
	return last
}

// Without this a page whose commands all failed to be found would pass.
func TestPagesHaveCommands(t *testing.T) {
	found := map[string]int{}
	for _, p := range pages(t) {
		found[p.path] = len(p.commands())
	}
	var err error
	for _, path := range []string{"README.md", "SECURITY.md", "docs/outage.md", "docs/policy.md", "docs/report.md", "docs/upgrade.md"} {
		if found[path] == 0 {
			err = errors.Join(err, fmt.Errorf("%s has no command", path))
		}
	}
	must(t, err)
}
