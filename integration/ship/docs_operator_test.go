package ship_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
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

// An operator has a cluster and a shell.
type operator struct {
	*testing.T
	cluster *cluster.Cluster
	calico  *calico.Datastore
	dir     string            // a checkout, as far as the pages need one
	logs    map[string]string // of the Jobs that ran, by name
	person  string            // who types; the administrator if empty
	who     func(sentence, typed string) (person string)
}

// installs reports whether the reader of the page has nothing installed yet.
func (p page) installs() bool { return p.path == "README.md" || p.path == "docs/install.md" }

// newOperator brings the outage about. An operator who reads another page than those that
// install has installed what the README says.
func newOperator(t *testing.T, p page) *operator {
	t.Helper()
	d := calico.KubernetesT(t)
	o := &operator{T: t, cluster: d.Cluster, calico: d, dir: t.TempDir(), logs: map[string]string{}}
	o.checkout(!p.installs())
	o.outage()
	if !p.installs() {
		out, err := o.bash("kubectl apply -k deploy/kustomize/cronjob")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return o
}

// checkout lays down what the commands name: the manifests, the recorded outage, the programs, and a
// kubeconfig with a context of the pages' name.
func (o *operator) checkout(plugin bool) {
	o.Helper()
	for _, dir := range []string{"deploy", "examples"} {
		must(o, os.CopyFS(o.path(dir), os.DirFS(filepath.Join(root(o), dir))))
	}
	for _, dir := range []string{"bin", "programs"} {
		must(o, os.Mkdir(o.path(dir), 0o700))
	}
	reaper := []string{"bin/ip-reaper", "programs/ip-reaper"}
	if plugin {
		reaper = append(reaper, "programs/kubectl-ip_reaper")
	}
	links := map[string][]string{"ip-reaper": reaper, "kubectl": {"programs/kubectl"}, "calicoctl": {"programs/calicoctl"}}
	for name, paths := range links {
		program, err := assets.Path(name)
		must(o, err)
		for _, path := range paths {
			must(o, os.Symlink(program, o.path(path)))
		}
	}
	o.kubeconfig("", o.cluster.Config)
}

// kubeconfig writes the kubeconfig of a person.
func (o *operator) kubeconfig(person string, is *rest.Config) {
	o.Helper()
	file, err := o.cluster.KubeconfigFor(is)
	must(o, err)
	config, err := clientcmd.LoadFromFile(file)
	must(o, err)
	config.Contexts["my-cluster"] = config.Contexts[cluster.ContextName].DeepCopy()
	config.Contexts["my-cluster"].Namespace = "default"
	config.CurrentContext = "my-cluster"
	must(o, clientcmd.WriteToFile(*config, o.path("kubeconfig"+person)))
}

// path is the path of something in the checkout.
func (o *operator) path(parts ...string) string {
	return filepath.Join(append([]string{o.dir}, parts...)...)
}

// bash runs a command as a shell does into which it is typed, in the checkout, and
// returns what it printed.
func (o *operator) bash(typed string) (string, error) {
	return bash(o.Context(), o.dir, typed, []string{o.path(".local", "bin"), o.path("programs")}, "HOME="+o.dir, "KUBECONFIG="+o.path("kubeconfig"+o.person))
}

// bash runs a command in a folder, with programs in front of those of the machine.
func bash(ctx context.Context, dir, typed string, programs []string, env ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", typed)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(env, "PATH="+strings.Join(append(programs, os.Getenv("PATH")), string(os.PathListSeparator)))
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("no end within %v: %w", commandTimeout, err)
	}
	return string(out), err
}

// lastRun is the ID of the last run that wrote a journal; empty if none did.
func (o *operator) lastRun() string {
	o.Helper()
	list, err := o.cluster.Kube.CoreV1().ConfigMaps(home).List(o.Context(), metav1.ListOptions{LabelSelector: "ip-reaper/journal"})
	must(o, err)
	last := ""
	for _, cm := range list.Items {
		last = max(last, cm.Labels["ip-reaper/run"]) // which begins with the time
	}
	return last
}
